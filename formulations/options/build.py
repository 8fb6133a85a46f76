"""From a round to its option table.

Jobs of one application in one pool choose from the rows of one `Grid`: each of its configurations.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ronda.formulations.clock import checkpoint
from ronda.formulations.models.efficiency import efficiency, scales_at
from ronda.formulations.models.power import speed_and_watts
from ronda.formulations.options.application import Application, application_of, applications
from ronda.formulations.options.table import (
    CLUSTER,
    COLUMNS,
    FLOATS_FROM,
    GPUS,
    NODE,
    POOL,
    RACK,
    RATE,
    SPAN,
    SPANS,
    WATTS,
    OptionTable,
    rivals,
    runs_as,
)
from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.job import JobState
from ronda.instances.profile import NoiseScale
from ronda.instances.round import Round

# Jobs worked on together: their temporary arrays of a few MiB stay in the cache.
TOGETHER = 1024
# Up to this many jobs are answered one by one, and the answers remembered for later rounds.
FEW = 32


class Terms(NamedTuple):
    """What jobs that choose from a grid together have in common.

    Clock fractions (ascending), global batches, GPU counts (those of the ladder within the jobs'
    limits, and what was asked for), and whether dominated rows are dropped (`prune`) and watts
    matter in that (`mind_power`).
    """

    clocks: tuple[float, ...]
    batches: tuple[float, ...]
    counts: tuple[int, ...]
    prune: bool
    mind_power: bool


class Grid(NamedTuple):
    """Configurations (rows) of an application in a pool, ordered by GPUs, span, clock and batch.

    `whole` (FLOATS_FROM, R) are their first columns, `ways` (COLUMNS - FLOATS_FROM, R) the others:
    clock, batch, samples per second (0: not feasible) and watts; `batch` (R,) is the index of the
    batch, `rivals` (2, B, R) are those of `ronda.formulations.options.table.rivals`, if rows that
    are dominated are to be dropped. What its own batch beats has no row then.
    """

    whole: Floats
    ways: Floats
    batch: Rows
    rivals: Floats | None


def build(
    round: Round, *, elastic: bool = True, prune: bool = True, mind_power: bool | None = None
) -> OptionTable:
    """Return all options of a round's live jobs.

    Elastic jobs may take the pool's ladder of GPU counts (powers of two in a node, then node size
    times powers of two) within their limits, or what the user asked for; every clock of the GPU
    type; and the profile's batches. Where watts matter, a batch that is slower and draws less has a
    row beside the fastest one; where they do not, the fastest stands for all. A rigid profile has
    its requested GPUs at full clock only. A job whose gradient noise is not known keeps its own
    batch, at full efficiency. Each option is assumed to use the fewest nodes that hold its GPUs.
    Where the pool has several racks and the profile says what crossing them costs, GPUs of several
    nodes have rows of span ``rack``, if a rack has enough, beside those of span ``cluster``, which
    count as crossing.

    What a job runs on now always has a row, flagged `current`, at the rate that its real nodes
    give. A running job that is not preemptible has no other row.

    Parameters
    ----------
    round
        The snapshot.
    elastic
        False: only the requested GPUs and batch at full clock.
    prune
        Drop rows that another row of the same job and pool dominates (see `rivals`).
    mind_power
        Whether a row with a lower rate and less power is worth keeping. None: if the round has a
        limit on power or energy, or a rack has one. Objectives that look at watts need True.
    """
    if mind_power is None:
        capped = any(rack.power_cap_w is not None for rack in round.cluster.racks)
        mind_power = capped or round.watts is not None
    jobs = round.jobs
    job, rows = _offered(round, jobs, elastic=elastic, flags=(prune, mind_power))
    job, rows, current = _with_current(round, jobs, job, rows)
    checkpoint()
    order = np.argsort(job, kind="stable")
    checkpoint()
    rows = rows[:, order]
    checkpoint()
    pool, gpus, span, width = rows[:FLOATS_FROM].astype(np.int64)
    clock, batch, rate, power_w = rows[FLOATS_FROM:]
    return OptionTable(
        jobs=jobs,
        pools=round.cluster.topology.pools,
        start=np.searchsorted(job[order], np.arange(len(jobs) + 1)),
        job=job[order],
        pool=pool,
        gpus=gpus,
        span=span,
        width=width,
        clock=clock,
        batch=batch,
        rate=rate,
        power_w=power_w,
        current=current[order],
        must_run=np.array([_must_run(state) for state in jobs], dtype=bool),
    )


def _must_run(state: JobState) -> bool:
    return state.allocation is not None and not state.job.preemptible


def _offered(
    round: Round, jobs: Sequence[JobState], *, elastic: bool, flags: tuple[bool, bool]
) -> tuple[Rows, Floats]:
    """Return (K,) jobs and (COLUMNS, K) the rows that they may choose from; a job's by pool."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for j, state in enumerate(jobs):
        if not _must_run(state):
            job = state.job
            chooses = elastic and state.noise is not None
            counts = (job.gpus, job.min_gpus, job.max_gpus)
            key = (job.profile, job.partition, job.gpu_types, job.batch, counts, chooses)
            alike.setdefault(key, []).append(j)
    job_parts, parts = [np.empty(0, dtype=np.int64)], [np.empty((COLUMNS, 0))]
    for members in alike.values():
        checkpoint()
        numbers, like = np.array(members), jobs[members[0]]
        noises = [jobs[j].noise for j in members]
        for of in applications(round, like.job):
            free = elastic and not of.rigid
            which, rows = offers(of, _terms(of, like, free, flags), noises)
            job_parts.append(numbers[which])
            parts.append(rows)
    return np.concatenate(job_parts), np.concatenate(parts, axis=1)


def _terms(of: Application, like: JobState, free: bool, flags: tuple[bool, bool]) -> Terms:
    """Return the terms of jobs like one; `free` to be run in other ways than asked for, or not."""
    job, batches = like.job, of.profile.batches
    if not free or like.noise is None or not batches:
        batches = (of.batch(job),)
    counts = {job.gpus} if job.gpus <= of.shape.pool.gpus else set[int]()
    if free:
        low, high = job.min_gpus or job.gpus, job.max_gpus or job.gpus
        counts.update(n for n in of.shape.ladder if low <= n <= high)
    clocks = of.shape.pool.gpu_type.clocks if free else (1.0,)
    return Terms(clocks, batches, tuple(sorted(counts)), *flags)


def _with_current(
    round: Round, jobs: Sequence[JobState], job: Rows, rows: Floats
) -> tuple[Rows, Floats, Mask]:
    """Return the rows with what jobs run on now, at the rate of their real nodes, and its mask."""
    held = {j: s.allocation.option for j, s in enumerate(jobs) if s.allocation is not None}
    if not held:
        return job, rows, np.zeros(len(job), dtype=bool)
    rate = _current_rates(round, [(j, jobs[j]) for j in held])
    current = runs_as(rows[:RATE], job, len(jobs), held)
    offered = job[current].tolist()
    rows[RATE, current] = [rate[j] for j in offered]
    more = sorted(held.keys() - set(offered))
    added = [
        (o.pool, o.gpus, SPANS.index(o.span), o.width, o.clock, o.batch, rate[j], o.power_w)
        for j, o in ((j, held[j]) for j in more)
    ]
    return (
        np.concatenate([job, np.array(more, dtype=np.int64)]),
        np.concatenate([rows, np.array(added).reshape(-1, COLUMNS).T], axis=1),
        np.concatenate([current, np.ones(len(more), dtype=bool)]),
    )


def _current_rates(round: Round, running: Sequence[tuple[int, JobState]]) -> dict[int, float]:
    """Return by number the rates of running jobs on the nodes that they really have.

    If the profile does not cover them, or the pool at all: the rate that the option promised.
    """
    rates, known = dict[int, float](), dict[tuple[str, int], Application | None]()
    rack = round.cluster.topology.node_rack
    for j, state in running:
        allocation = state.allocation
        assert allocation is not None
        rates[j] = allocation.option.rate
        pair = (state.job.profile, allocation.option.pool)
        if pair not in known:
            known[pair] = application_of(round, state, allocation.option.pool)
        of = known[pair]
        if of is not None:
            racks = 1
            if of.minds_racks:
                racks = len({int(rack[node]) for node, _ in allocation.placement})
            rates[j] = of.rate_on(allocation, racks, state.noise) or rates[j]
    return rates


def offers(
    of: Application, terms: Terms, noises: Sequence[NoiseScale | None]
) -> tuple[Rows, Floats]:
    """Return (K,) which of the jobs, by their noise, rows are for, and (COLUMNS, K) the rows.

    A noise (gradient noise scale) of None: every sample counts fully.
    """
    if len(noises) <= FEW:
        parts = [_offer(of, terms, noise) for noise in noises]
        which = np.arange(len(parts)).repeat([part.shape[1] for part in parts])
        return which, np.concatenate(parts, axis=1)
    whose, found, grid = list[Rows](), list[Floats](), _grid(of, terms)
    for at in range(0, len(noises), TOGETHER):
        checkpoint()
        which, rows = _rows(grid, of, terms, noises[at : at + TOGETHER])
        whose.append(which + at)
        found.append(rows)
    return np.concatenate(whose), np.concatenate(found, axis=1)


@lru_cache(maxsize=512)
def _offer(of: Application, terms: Terms, noise: NoiseScale | None) -> Floats:
    """Return (COLUMNS, K) the rows for one job."""
    checkpoint()
    return _rows(_grid(of, terms), of, terms, [noise])[1]


def _rows(
    grid: Grid, of: Application, terms: Terms, noises: Sequence[NoiseScale | None]
) -> tuple[Rows, Floats]:
    """Return (K,) which of the jobs rows are for, ascending, and (COLUMNS, K) the rows."""
    kept, rates = _choose(of, terms, grid, noises)
    which, row = kept.nonzero()
    rows = np.empty((COLUMNS, len(row)))
    rows[:FLOATS_FROM] = grid.whole[:, row]
    rows[FLOATS_FROM:] = grid.ways[:, row]
    rows[RATE] = rates[kept]
    return which, rows


@lru_cache(maxsize=1024)
def _grid(of: Application, terms: Terms) -> Grid:
    """Return the grid of some terms, some 10 KiB.

    Unless every clock has a row, each batch is run at its fastest clock, of equally fast ones the
    lowest.
    """
    shape, batches = of.shape, np.array(terms.batches)
    gpus, span = np.array(_spans(of, terms.counts), dtype=np.int64).reshape(-1, 2).T
    n, s = gpus[:, None, None], np.array(terms.clocks)[:, None]
    racks = np.where(span == CLUSTER, shape.pool.racks, 1)[:, None, None]
    nodes = -(-n // shape.pool.gpus_per_node)
    speed, power_w = speed_and_watts(of.profile, shape.pool.gpu_type, n, nodes, batches, s, racks)
    clock = np.broadcast_to(s, speed.shape)
    if terms.prune and not terms.mind_power:
        best = speed.argmax(axis=1, keepdims=True)
        clock, speed, power_w = (np.take_along_axis(x, best, 1) for x in (clock, speed, power_w))
    each, batch = speed.shape[1] * len(batches), np.arange(len(batches))
    whole = np.ones((FLOATS_FROM, len(gpus) * each))
    whole[POOL], whole[GPUS], whole[SPAN] = shape.index, gpus.repeat(each), span.repeat(each)
    ways = np.array(np.broadcast_arrays(clock, batches, speed, power_w)).reshape(4, -1)
    which = np.broadcast_to(batch, speed.shape).ravel()
    if not terms.prune:
        return Grid(whole, ways, which, None)
    costs = [whole[GPUS], whole[SPAN] == RACK, whole[SPAN] == CLUSTER]
    if terms.mind_power:
        costs.append(ways[WATTS - FLOATS_FROM])
    pace = ways[RATE - FLOATS_FROM]
    others = rivals(pace, len(batches), np.array(costs))
    left = np.flatnonzero(pace > others[0, which, np.arange(len(which))])
    return Grid(whole[:, left], ways[:, left], which[left], others[:, :, left])


def _spans(of: Application, counts: Sequence[int]) -> list[tuple[int, int]]:
    """Return GPU counts and how far these may reach: a rack is an offer only if it is faster."""
    rows = []
    for n in counts:
        if n <= of.shape.pool.gpus_per_node:
            rows.append((n, NODE))
            continue
        if of.minds_racks and n <= of.shape.rack_gpus:
            rows.append((n, RACK))
        rows.append((n, CLUSTER))
    return rows


def _choose(
    of: Application, terms: Terms, grid: Grid, noises: Sequence[NoiseScale | None]
) -> tuple[Mask, Floats]:
    """Return (X, R) which rows jobs of some noise have, and at which rate.

    A batch uses no shared resource but watts: a larger one synchronises less often, and draws more
    where that takes fewer watts than computing. What a sample is worth in a batch depends on the
    noise, so which batches beat others differs from job to job. Unless watts matter, the
    fastest batch is best, of equally fast ones the first.
    """
    worth = _worth(of, terms.batches, noises)
    rates = worth[:, grid.batch] * grid.ways[RATE - FLOATS_FROM]
    kept = rates > 0
    if grid.rivals is not None:
        for b, (first, later) in enumerate(grid.rivals.transpose(1, 0, 2)):
            kept &= rates > worth[:, b, None] * first
            if later.any():
                kept &= rates >= worth[:, b, None] * later
    elif not terms.mind_power:
        of_each = rates.reshape(len(rates), -1, len(terms.batches))
        fastest = of_each.argmax(axis=2)[:, :, None] == np.arange(len(terms.batches))
        kept &= fastest.reshape(kept.shape)
    return kept, rates


def _worth(
    of: Application, batches: tuple[float, ...], noises: Sequence[NoiseScale | None]
) -> Floats:
    """Return (X, B) what a sample is worth in each batch."""
    found = np.ones((len(noises), len(batches)))
    known = [x for x, noise in enumerate(noises) if noise is not None]
    if known and not of.rigid:
        scales = scales_at([noise for noise in noises if noise is not None], batches)
        found[known] = efficiency(scales, np.array(batches), of.profile.base_batch)
    return found
