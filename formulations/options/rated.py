"""Options of jobs whose rates were handed over: the rows of all their tables, in one pass."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ronda.formulations.clock import checkpoint
from ronda.formulations.models.rated import BATCH, CLOCK, GPUS, NODES, RATE, WATTS, columns
from ronda.formulations.options import table as t
from ronda.formulations.options.application import Application
from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.job import Job


class Told(NamedTuple):
    """A job, by its number, in a pool that it has rates for; `free` to be run as not asked for."""

    number: int
    job: Job
    of: Application
    free: bool


def rated_ways(told: Sequence[Told], *, prune: bool, mind_power: bool) -> tuple[Rows, Floats]:
    """Return (K,) whose each row is, and (COLUMNS, K) the rows, in the order of the tables.

    Jobs may have every way within their limits that has a rate on the fewest nodes that hold the
    GPUs; those not free what they asked for, at full clock. Rows that are beaten (`unbeaten`) are
    dropped if `prune`; watts count in that if `mind_power`.
    """
    if not told:
        return np.empty(0, dtype=np.int64), np.empty((t.COLUMNS, 0))
    tables = [_columns(each.of) for each in told]
    which = np.repeat(np.arange(len(told)), [table.shape[1] for table in tables])
    rows = np.concatenate(tables, axis=1)
    checkpoint()
    kept = np.flatnonzero(_allowed(told, which, rows))
    which, rows = which[kept], rows[:, kept]
    if prune:
        costs = rows[[GPUS, WATTS]] if mind_power else rows[[GPUS]]
        best = t.unbeaten(which, rows[RATE], costs)
        which, rows = which[best], rows[:, best]
    pools = np.array([each.of.shape.index for each in told])
    per_node = np.array([each.of.shape.pool.gpus_per_node for each in told])
    ways = np.ones((t.COLUMNS, len(which)))
    ways[t.POOL] = pools[which]
    ways[t.SPAN] = np.where(rows[GPUS] <= per_node[which], t.NODE, t.CLUSTER)
    for column, own in _SAME:
        ways[column] = rows[own]
    return np.array([each.number for each in told])[which], ways


_SAME = ((t.GPUS, GPUS), (t.CLOCK, CLOCK), (t.BATCH, BATCH), (t.RATE, RATE), (t.WATTS, WATTS))


def _columns(of: Application) -> Floats:
    assert of.rated is not None
    return columns(of.rated, of.shape.pool.gpu_type.idle_w)


def _allowed(told: Sequence[Told], which: Rows, rows: Floats) -> Mask:
    """Tell (K,) which rows a job may have."""
    limits = [
        (
            job.gpus,
            (job.min_gpus or job.gpus) if free else job.gpus,
            (job.max_gpus or job.gpus) if free else job.gpus,
            of.shape.pool.gpus,
            of.shape.pool.gpus_per_node,
            -1.0 if free else of.batch(job),
            of.shape.index,
        )
        for _, job, of, free in told
    ]
    asked, low, high, most, per_node, batch, pool = np.array(limits, dtype=float).T[:, which]
    gpus = rows[GPUS]
    allowed = (gpus == asked) | ((low <= gpus) & (gpus <= high))
    allowed &= (gpus <= most) & (rows[NODES] == np.ceil(gpus / per_node))
    allowed &= (batch < 0) | ((rows[BATCH] == batch) & (rows[CLOCK] == 1.0))
    for shape in {each.of.shape.index: each.of.shape for each in told}.values():
        offered = np.isin(rows[CLOCK], shape.pool.gpu_type.clocks)
        allowed &= offered | (pool != shape.index)
    return np.asarray(allowed)
