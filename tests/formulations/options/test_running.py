"""What runs now, as rows of the option table."""

import numpy as np

from ronda.formulations.options.running import running_rows
from ronda.formulations.options.table import build
from ronda.instances import generate


def test_running_rows_are_the_current_ones():
    """Running jobs have the row that they run on, waiting ones none."""
    round_ = generate.round(jobs=24, seed=1)
    table = build(round_)
    rows = running_rows(table)
    runs = np.array([state.allocation is not None for state in table.jobs])
    assert ((rows >= 0) == runs).all()
    assert table.current[rows[runs]].all()
    assert (table.job[rows[runs]] == np.flatnonzero(runs)).all()
