"""A choice to start a search from: an earlier plan."""

import numpy as np

from ronda.formulations.options.grid import SPANS
from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Rows
from ronda.instances.plan import Plan


def rows_of(table: OptionTable, plan: Plan) -> Rows:
    """Return (J,) the rows that an earlier plan's options correspond to, -1 for those without one.

    Rates and powers may have changed since. Jobs that must run keep their only row.
    """
    columns = (table.pool, table.gpus, table.span, table.clock, table.batch, table.width)
    wanted = np.full((len(columns), len(table.jobs)), np.nan)
    for j, state in enumerate(table.jobs):
        held = plan.allocations.get(state.job.id)
        if held is not None:
            o = held.option
            wanted[:, j] = (o.pool, o.gpus, SPANS.index(o.span), o.clock, o.batch, o.width)
    same = (np.array(columns) == wanted[:, table.job]).all(axis=0)
    rows = np.flatnonzero(same | table.must_run[table.job])
    chosen = np.full(len(table.jobs), -1, dtype=np.int64)
    chosen[table.job[rows]] = rows
    return chosen
