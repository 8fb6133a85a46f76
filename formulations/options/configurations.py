"""All ways to run applications in pools, from grids of models and from given tables of rates.

A way is a configuration of an application in a pool. A grid holds the ways of one application on
given terms, for any job. Grids of measured step times that are requested together are made
together. Where a job has a table of rates, the table gives its ways, and the rows of all tables are
made in one pass.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ronda.formulations.options.application import LEAST_SPEED, Application, PoolShape
from ronda.formulations.options.table import (
    ASKED,
    BATCH,
    CLOCK,
    CLUSTER,
    COLUMNS,
    GPUS,
    NODE,
    POOL,
    RACK,
    RATE,
    SPAN,
    WATTS,
    rivals,
    unbeaten,
)
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.job import Job
from ronda.instances.models import rated
from ronda.instances.models.cache import Remembered
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.power import measured_speeds_and_watts, speed_and_watts


class Terms(NamedTuple):
    """The terms that all jobs which choose from one grid have in common.

    They are ascending clock fractions, global batches, GPU counts (`Application.sizes`, or as
    requested), whether to drop dominated rows (`prune`), also by watts (`mind_power`), and whether
    jobs have their nodes to themselves (`exclusive`).
    """

    clocks: tuple[float, ...]
    batches: tuple[float, ...]
    counts: tuple[int, ...]
    prune: bool
    mind_power: bool
    exclusive: bool = False


class Grid(NamedTuple):
    """The configurations (rows) of an application in a pool, sorted by GPUs, span, clock and batch.

    `ways` (COLUMNS, R) are the columns of the rows, with samples per second (0 if not feasible) in
    place of the rate; `batch` (R,) is the index of the batch. If dominated rows are dropped,
    `rivals` (2, B, R) is the result of `ronda.formulations.options.table.rivals`, and a
    configuration that another one with the same batch beats has no row.
    """

    ways: Floats
    batch: Rows
    rivals: Floats | None


Asked = tuple[Application, Terms]
"""The application and the terms of a grid."""

_known = Remembered[Asked, Grid](maxsize=1024)

TOGETHER = 64
"""The number of grids made together, so that arrays stay in the cache and deadlines lose little."""


def grids(asked: Sequence[Asked]) -> list[Grid]:
    """Return the grids of applications on given terms, from a cache of recent grids."""
    return _known.of(asked, _made)


class _Ways(NamedTuple):
    """Configurations (R,), ordered by GPUs, span, clock and batch.

    `gpus` compute, and `held` are all that the job holds. A level is a pair of GPUs and span;
    `below` (L, L) tells for each pair of levels whether the second takes no more than the first.
    """

    gpus: Floats
    held: Floats
    span: Floats
    nodes: Floats
    racks: Floats
    clock: Floats
    batch: Floats
    level: Rows
    below: Mask


@lru_cache(maxsize=256)
def _ways(shape: PoolShape, terms: Terms, minds_racks: bool) -> _Ways:
    levels = _levels(shape, terms.counts, minds_racks)
    each = len(terms.clocks) * len(terms.batches)
    of_level = np.array(levels, dtype=float).reshape(-1, 2).T
    gpus, span = of_level.repeat(each, axis=1)
    held = of_level[0]
    cost = held
    if terms.exclusive:  # of two levels with the same nodes one comes first
        held = np.array([shape.held(n) for n in held.astype(int).tolist()], dtype=float)
        cost = held - 1e-9 * of_level[0]
    below = cost <= cost[:, None]
    for kind in (RACK, CLUSTER):
        own = of_level[1] == kind
        below &= own <= own[:, None]
    return _Ways(
        gpus,
        held.repeat(each),
        span,
        np.ceil(gpus / shape.pool.gpus_per_node),
        np.where(span == CLUSTER, shape.pool.racks, 1.0),
        np.tile(np.repeat(terms.clocks, len(terms.batches)), len(levels)),
        np.tile(terms.batches, len(levels) * len(terms.clocks)),
        np.repeat(np.arange(len(levels)), each),
        below,
    )


def _levels(shape: PoolShape, counts: Sequence[int], minds_racks: bool) -> list[tuple[int, int]]:
    """Return pairs of GPU count and span; span rack is offered only where it is faster."""
    rows = []
    for n in counts:
        if n <= shape.pool.gpus_per_node:
            rows.append((n, NODE))
            continue
        if minds_racks and n <= shape.rack_gpus:
            rows.append((n, RACK))
        rows.append((n, CLUSTER))
    return rows


def _made(asked: Sequence[Asked]) -> Iterator[tuple[Asked, Grid]]:
    """Yield the grids, and compute those with equal configurations and kinds of models together."""
    alike = dict[tuple[PoolShape, Terms, bool, bool], list[Application]]()
    for of, terms in asked:
        alike.setdefault((of.shape, terms, of.minds_racks, of.tabular), []).append(of)
    for (shape, terms, minds_racks, _), members in alike.items():
        ways = _ways(shape, terms, minds_racks)
        for at in range(0, len(members), TOGETHER):
            checkpoint()
            some = members[at : at + TOGETHER]
            made = _grids(shape, terms, ways, *_speeds(some, ways))
            yield from zip([(of, terms) for of in some], made, strict=True)


def _speeds(members: Sequence[Application], ways: _Ways) -> tuple[Floats, Floats]:
    """Return the samples per second and the watts, (X, R) each."""
    shape = members[0].shape
    gpu_type = shape.pool.gpu_type
    at = Configuration(ways.gpus, ways.nodes, ways.batch, ways.clock, ways.racks)
    if members[0].tabular:
        speed, watts = measured_speeds_and_watts([of.profile for of in members], gpu_type, at)
    else:
        speed, watts = np.empty((2, len(members), len(ways.gpus)))
        for x, of in enumerate(members):
            checkpoint()
            speed[x], watts[x] = speed_and_watts(of.profile, gpu_type, at)
        near = np.flatnonzero(ways.span == RACK)  # each is followed by its like in several racks
        far = near + np.searchsorted(ways.level, 1)
        speed[:, far] *= speed[:, far] >= LEAST_SPEED * speed[:, near]
    for r in np.flatnonzero(_spread(shape, ways.gpus)).tolist():
        way = int(ways.gpus[r]), float(ways.batch[r]), float(ways.clock[r])
        speed[:, r] *= [of.has_nodes(*way) for of in members]
    return speed, watts


def _spread(shape: PoolShape, gpus: Floats) -> Mask:
    """Return whether GPUs take more nodes than their rate is promised for, shape (K,)."""
    wide = [n for n in np.unique(gpus).tolist() if shape.spreads(int(n)) is not None]
    return np.isin(gpus, wide)


def _grids(
    shape: PoolShape, terms: Terms, ways: _Ways, speed: Floats, power_w: Floats
) -> Iterator[Grid]:
    """Yield the grids of configurations with the given speeds and watts (X, R).

    If rows are pruned without regard to watts, each batch has only its fastest clock, and the
    lowest among equally fast clocks.
    """
    batches = len(terms.batches)
    rows = np.ones((COLUMNS, *speed.shape))
    rows[POOL], rows[GPUS], rows[SPAN] = shape.index, ways.held, ways.span
    if terms.exclusive:
        power_w = power_w + (ways.held - ways.gpus) * shape.pool.gpu_type.idle_w
    rows[ASKED] = ways.gpus
    rows[CLOCK], rows[BATCH], rows[RATE], rows[WATTS] = ways.clock, ways.batch, speed, power_w
    batch, level = np.tile(np.arange(batches), speed.shape[1] // batches), ways.level
    if terms.prune and not terms.mind_power:
        by_clock = rows.reshape(COLUMNS, len(speed), -1, len(terms.clocks), batches)
        fastest = by_clock[RATE].argmax(axis=2)[None, :, :, None]
        rows = np.take_along_axis(by_clock, fastest, axis=3).reshape(COLUMNS, len(speed), -1)
        batch, level = batch[: rows.shape[2]], level[:: len(terms.clocks)]
    if not terms.prune:
        yield from (Grid(own.copy(), batch, None) for own in rows.transpose(1, 0, 2))
        return
    watts = rows[WATTS] if terms.mind_power else np.zeros_like(rows[WATTS])
    for own, own_w in zip(rows.transpose(1, 0, 2), watts, strict=True):
        checkpoint()
        others = rivals(own[RATE], batch, batches, level, ways.below, own_w)
        left = np.flatnonzero(own[RATE] > others[0, batch, np.arange(len(batch))])
        yield Grid(own[:, left], batch[left], others[:, :, left])


class RatedJob(NamedTuple):
    """A job with its number, in a pool with rates for it; if not `free`, it runs as requested."""

    number: int
    job: Job
    of: Application
    free: bool


def rated_ways(told: Sequence[RatedJob], *, prune: bool, mind_power: bool) -> tuple[Rows, Floats]:
    """Return the job of each row (K,) and the rows (COLUMNS, K), in the order of the tables.

    A job may have every way within its limits that has a rate on the fewest nodes which hold the
    GPUs; a job that is not free has only its requested ways at full clock. `prune` drops rows that
    others beat (`unbeaten`), also by watts if `mind_power` is set.
    """
    if not told:
        return np.empty(0, dtype=np.int64), np.empty((COLUMNS, 0))
    tables = [_columns(each.of) for each in told]
    which = np.repeat(np.arange(len(told)), [table.shape[1] for table in tables])
    rows = np.concatenate(tables, axis=1)
    checkpoint()
    kept = np.flatnonzero(_allowed(told, which, rows))
    which, rows = which[kept], rows[:, kept]
    pools = np.array([each.of.shape.index for each in told])
    per_node = np.array([each.of.shape.pool.gpus_per_node for each in told])
    held = rows[rated.GPUS]
    if any(each.job.exclusive for each in told):
        alone = np.array([each.job.exclusive for each in told])[which]
        held = np.where(alone, -(-held // per_node[which]) * per_node[which], held)
        idle_w = np.array([each.of.shape.pool.gpu_type.idle_w for each in told])[which]
        rows[rated.WATTS] += (held - rows[rated.GPUS]) * idle_w
    if prune:
        costs = np.stack([held, rows[rated.WATTS]] if mind_power else [held])
        best = unbeaten(which, rows[rated.RATE], costs)
        which, rows, held = which[best], rows[:, best], held[best]
    ways = np.ones((COLUMNS, len(which)))
    ways[POOL] = pools[which]
    ways[SPAN] = np.where(rows[rated.GPUS] <= per_node[which], NODE, CLUSTER)
    for column, own in _SAME:
        ways[column] = rows[own]
    ways[GPUS] = held
    return np.array([each.number for each in told])[which], ways


_SAME = (
    (ASKED, rated.GPUS),
    (CLOCK, rated.CLOCK),
    (BATCH, rated.BATCH),
    (RATE, rated.RATE),
    (WATTS, rated.WATTS),
)


def _columns(of: Application) -> Floats:
    assert of.rated is not None
    return rated.columns(of.rated, of.shape.pool.gpu_type.idle_w)


def _allowed(told: Sequence[RatedJob], which: Rows, rows: Floats) -> Mask:
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
    gpus = rows[rated.GPUS]
    allowed = (gpus == asked) | ((low <= gpus) & (gpus <= high))
    allowed &= (gpus <= most) & (rows[rated.NODES] == np.ceil(gpus / per_node))
    allowed &= (batch < 0) | ((rows[rated.BATCH] == batch) & (rows[rated.CLOCK] == 1.0))
    for shape in {each.of.shape.index: each.of.shape for each in told}.values():
        offered = np.isin(rows[rated.CLOCK], shape.pool.gpu_type.clocks)
        allowed &= offered | (pool != shape.index)
        for k in np.flatnonzero(allowed & (pool == shape.index) & _spread(shape, gpus)).tolist():
            way = (int(gpus[k]), float(rows[rated.BATCH, k]), float(rows[rated.CLOCK, k]))
            allowed[k] = told[int(which[k])].of.has_nodes(*way)
    for x, (_, job, of, _) in enumerate(told):
        if job.sizes or job.slices is not None or job.one_node or job.exclusive:
            for k in np.flatnonzero(allowed & (which == x)).tolist():
                n = int(gpus[k])
                named = not job.sizes or n in job.sizes
                allowed[k] = named and of.shape.takes(job, n)
    return np.asarray(allowed)
