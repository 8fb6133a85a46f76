"""What runs now, as rows of the option table."""

import numpy as np

from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Rows


def running_rows(table: OptionTable) -> Rows:
    """Return (J,) the row that each job runs on now, -1 for those that wait."""
    chosen = np.full(len(table.jobs), -1, dtype=np.int64)
    current = np.flatnonzero(table.current)
    chosen[table.job[current]] = current
    return chosen
