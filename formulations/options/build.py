"""From a round to its option table."""

from collections.abc import Sequence

import numpy as np

from ronda.formulations.clock import checkpoint
from ronda.formulations.options.application import Application, application_of, applications
from ronda.formulations.options.grid import Request, Terms, offers
from ronda.formulations.options.table import COLUMNS, FLOATS_FROM, RATE, SPANS, OptionTable, runs_as
from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.job import JobState
from ronda.instances.round import Round


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
        Drop rows that another row of the same job and pool dominates (see `dominance`).
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
