"""From a round to its option table.

Jobs of one application in one pool choose from the rows of one `Grid`: each of its configurations.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ronda.formulations.clock import checkpoint
from ronda.formulations.models.efficiency import efficiency, scale_at
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
    runs_as,
    undominated,
)
from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.job import JobState
from ronda.instances.profile import NoiseScale
from ronda.instances.round import Round

# Requests worked on together: their temporary arrays of a few MiB stay in the cache.
TOGETHER = 128
# Up to this many requests are answered one by one, and the answers remembered for later rounds.
FEW = 32


class Terms(NamedTuple):
    """What jobs that choose from a grid together have in common.

    Clock fractions (ascending), global batches, and whether dominated rows are dropped (`prune`)
    and watts matter in that (`mind_power`).
    """

    clocks: tuple[float, ...]
    batches: tuple[float, ...]
    prune: bool
    mind_power: bool


class Request(NamedTuple):
    """What a job may choose from: the ladder's GPU counts within [low, high], and `asked`.

    A `noise` (gradient noise scale) of None: every sample counts fully.
    """

    low: int
    high: int
    asked: int
    noise: NoiseScale | None


class Grid(NamedTuple):
    """Configurations (rows) of an application in a pool, ordered by GPUs, then span, then clock.

    `on_ladder` (R,) tells which are offered without being asked for, `whole` (FLOATS_FROM, R) are
    their first columns, `ways` (COLUMNS - FLOATS_FROM, R, B) the others with each batch: clock,
    batch, samples per second (0: not feasible) and watts.
    """

    on_ladder: Mask
    whole: Floats
    ways: Floats


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
        Drop rows that another row of the same job and pool dominates (see `undominated`).
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
            key = (job.profile, job.partition, job.gpu_types, job.batch, chooses)
            alike.setdefault(key, []).append(j)
    job_parts, parts = [np.empty(0, dtype=np.int64)], [np.empty((COLUMNS, 0))]
    for members in alike.values():
        checkpoint()
        numbers = np.array(members)
        states = [jobs[j] for j in members]
        for of in applications(round, states[0].job):
            free = elastic and not of.rigid
            requests = [_request(state, elastic=free) for state in states]
            which, rows = offers(of, _terms(of, states[0], free, flags), requests)
            job_parts.append(numbers[which])
            parts.append(rows)
    return np.concatenate(job_parts), np.concatenate(parts, axis=1)


def _terms(of: Application, like: JobState, free: bool, flags: tuple[bool, bool]) -> Terms:
    """Return the terms of jobs like one; `free` to be run in other ways than asked for, or not."""
    batches = of.profile.batches
    if not free or like.noise is None or not batches:
        batches = (of.batch(like.job),)
    return Terms(of.shape.pool.gpu_type.clocks if free else (1.0,), batches, *flags)


def _request(state: JobState, *, elastic: bool) -> Request:
    job = state.job
    if not elastic:
        return Request(job.gpus, job.gpus, job.gpus, state.noise)
    return Request(job.min_gpus or job.gpus, job.max_gpus or job.gpus, job.gpus, state.noise)


def _with_current(
    round: Round, jobs: Sequence[JobState], job: Rows, rows: Floats
) -> tuple[Rows, Floats, Mask]:
    """Return the rows with what jobs run on now, at the rate of their real nodes, and its mask."""
    held = {j: s.allocation.option for j, s in enumerate(jobs) if s.allocation is not None}
    if not held:
        return job, rows, np.zeros(len(job), dtype=bool)
    rate = {j: _current_rate(round, jobs[j]) for j in held}
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


def _current_rate(round: Round, state: JobState) -> float:
    """Return the rate of a running job on the nodes that it really has.

    If the profile does not cover them, or the pool at all: the rate that its option promised.
    """
    allocation = state.allocation
    assert allocation is not None
    of = application_of(round, state, allocation.option.pool)
    if of is None:
        return allocation.option.rate
    racks = 1
    if of.minds_racks:
        rack = round.cluster.topology.node_rack
        racks = len({int(rack[node]) for node, _ in allocation.placement})
    return of.rate_on(allocation, racks, state.noise) or allocation.option.rate


def offers(of: Application, terms: Terms, requests: Sequence[Request]) -> tuple[Rows, Floats]:
    """Return (K,) the requests that rows answer, ascending, and (COLUMNS, K) the rows."""
    distinct, parts = dict.fromkeys(requests), list[Floats]()
    if len(distinct) <= FEW:
        for request in distinct:
            checkpoint()
            parts.append(_offer(of, terms, request))
    else:
        chosen = list(distinct)
        for at in range(0, len(chosen), TOGETHER):
            checkpoint()
            parts += _offers(of, terms, chosen[at : at + TOGETHER])
    if len(distinct) < len(requests):
        known = dict(zip(distinct, parts, strict=True))
        parts = [known[request] for request in requests]
    counts = [part.shape[1] for part in parts]
    return np.arange(len(parts)).repeat(counts), np.concatenate(parts, axis=1)


@lru_cache(maxsize=512)
def _offer(of: Application, terms: Terms, request: Request) -> Floats:
    """Return (COLUMNS, K) the rows that answer one request."""
    return _offers(of, terms, [request])[0]


def _offers(of: Application, terms: Terms, requests: Sequence[Request]) -> list[Floats]:
    """Return (COLUMNS, K) the rows that answer each request."""
    asked = {r.asked for r in requests if r.asked <= of.shape.pool.gpus}
    counts = tuple(sorted({*of.shape.ladder, *asked}))
    every_clock = terms.mind_power or not terms.prune
    grid = _grid(of, terms.clocks, terms.batches, counts, every_clock)
    kept, rates = _choose(of, terms, grid, requests)
    request, row, way = kept.nonzero()
    rows = np.empty((COLUMNS, len(row)))
    rows[:FLOATS_FROM] = grid.whole[:, row]
    rows[FLOATS_FROM:] = grid.ways[:, row, way]
    rows[RATE] = rates[kept]
    return np.split(rows, request.searchsorted(np.arange(1, len(requests))), axis=1)


@lru_cache(maxsize=256)
def _grid(
    of: Application,
    clocks: tuple[float, ...],
    batches: tuple[float, ...],
    counts: tuple[int, ...],
    every_clock: bool,
) -> Grid:
    """Return the grid of some GPU counts, at most about 50 KiB.

    Unless every clock has a row, each batch is run at its fastest clock, of equally fast ones the
    lowest.
    """
    shape = of.shape
    gpus, span = np.array(_spans(of, counts), dtype=np.int64).reshape(-1, 2).T
    n, s, b = gpus[:, None, None], np.array(clocks)[:, None], np.array(batches)
    racks = np.where(span == CLUSTER, shape.pool.racks, 1)[:, None, None]
    nodes = -(-n // shape.pool.gpus_per_node)
    speed, power_w = speed_and_watts(of.profile, shape.pool.gpu_type, n, nodes, b, s, racks)
    clock = np.broadcast_to(s, speed.shape)
    if not every_clock:
        best = speed.argmax(axis=1, keepdims=True)
        clock, speed, power_w = (np.take_along_axis(x, best, 1) for x in (clock, speed, power_w))
    each = speed.shape[1]
    whole = np.ones((FLOATS_FROM, len(gpus) * each))
    whole[POOL], whole[GPUS], whole[SPAN] = shape.index, gpus.repeat(each), span.repeat(each)
    ways = np.array(np.broadcast_arrays(clock, b, speed, power_w))
    return Grid(
        np.isin(whole[GPUS], shape.ladder), whole, ways.reshape(len(ways), -1, len(batches))
    )


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
    of: Application, terms: Terms, grid: Grid, requests: Sequence[Request]
) -> tuple[Mask, Floats]:
    """Return (X, R, B) which rows answer each request with which batches, and at which rate.

    A batch uses no shared resource but watts: a larger one synchronises less often, and draws more
    where that takes fewer watts than computing. Unless watts matter, the fastest batch is best, of
    equally fast ones the first.
    """
    speed, power_w = grid.ways[RATE - FLOATS_FROM], grid.ways[WATTS - FLOATS_FROM]
    rates = _worth(of, terms.batches, [r.noise for r in requests])[:, None] * speed
    gpus = grid.whole[GPUS]
    low, high, asked = np.array([r[:3] for r in requests]).T[:, :, None]
    offered = (grid.on_ladder & (gpus >= low) & (gpus <= high)) | (gpus == asked)
    kept = offered[:, :, None] & (rates > 0)
    if not terms.mind_power:
        kept &= np.arange(rates.shape[2]) == rates.argmax(axis=2)[:, :, None]
    if terms.prune:
        shape, each = rates.shape, rates.shape[2]
        drawn_w = np.broadcast_to(power_w.ravel(), (len(rates), power_w.size))
        kept = undominated(
            kept.reshape(drawn_w.shape),
            rates.reshape(drawn_w.shape),
            drawn_w if terms.mind_power else None,
            gpus.repeat(each),
            grid.whole[SPAN].repeat(each),
        ).reshape(shape)
    return kept, rates


def _worth(
    of: Application, batches: tuple[float, ...], noises: Sequence[NoiseScale | None]
) -> Floats:
    """Return (X, B) what a sample is worth in each batch."""
    found = np.ones((len(noises), len(batches)))
    known = [x for x, noise in enumerate(noises) if noise is not None]
    if known and not of.rigid:
        scale = np.array([scale_at(noise, batches) for noise in noises if noise is not None])
        found[known] = efficiency(scale, np.array(batches), of.profile.base_batch)
    return found
