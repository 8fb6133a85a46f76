"""All the ways to run the jobs of a round, as one table of parallel columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.current_row import with_current
from ronda.formulations.kept_options import JobRows, kept_options
from ronda.formulations.menu import COLUMNS, SPANS, Menu, Request, menu
from ronda.formulations.pool_shape import PoolShape, pool_shapes
from ronda.instances.cluster import Pool
from ronda.instances.instance import Round
from ronda.instances.job import JobState, Option
from ronda.instances.profile import Profile

Floats = NDArray[np.float64]
Choice = tuple[Menu, Request]
Value = TypeVar("Value")

FULL = (1.0,)  # the clocks of a job that has no choice


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options of a round: the one language that every solver speaks.

    Rows are sorted by job; the rows of job j are ``start[j]:start[j + 1]`` (possibly none).
    Not to run is always possible and has no row.

    Attributes
    ----------
    jobs
        (J,) the live jobs, running ones first, as in ``round.jobs``.
    pools
        (P,) the cluster's pools.
    start
        (J + 1,) offsets of each job's rows.
    job, pool, gpus, span, width
        (K,) index of job and pool, GPUs, index into `SPANS`, models fused.
    clock, batch
        (K,) clock as a fraction of the maximum; global batch size.
    rate
        (K,) expected work per second.
    power_w
        (K,) watts of all the job's GPUs while it progresses.
    current
        (K,) whether the row is what the job runs on now.
    must_run
        (J,) whether the job may not be stopped or changed (its only row is the current one).
    changes
        How many jobs' rows were kept from the round before, and why how many were built
        (`ronda.formulations.kept_options`): what building cost, which no solver looks at.
    derived
        What `derive` has made; tables that `build` gives the same jobs and columns share it.
    """

    jobs: tuple[JobState, ...]
    pools: tuple[Pool, ...]
    start: NDArray[np.int64]
    job: NDArray[np.int64]
    pool: NDArray[np.int64]
    gpus: NDArray[np.int64]
    span: NDArray[np.int64]
    width: NDArray[np.int64]
    clock: NDArray[np.float64]
    batch: NDArray[np.float64]
    rate: NDArray[np.float64]
    power_w: NDArray[np.float64]
    current: NDArray[np.bool_]
    must_run: NDArray[np.bool_]
    changes: Mapping[str, int] = field(default_factory=dict)
    derived: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __len__(self) -> int:
        """Return the number of options (rows)."""
        return len(self.job)

    @property
    def extra_w(self) -> Floats:
        """(K,) the watts that each option adds to those of its GPUs idle."""
        return self.derive("extra_w", _extra_w)

    def derive(self, name: str, make: Callable[["OptionTable"], Value]) -> Value:
        """Return what follows from the jobs and columns, made once for all tables that have them.

        Parameters
        ----------
        name
            Which value: unique in the code base.
        make
            Makes it, from what does not change while the jobs and their options stay the same:
            not from `current`, `must_run` or what is in a `JobState` but its job.
        """
        try:
            return self.derived[name]  # type: ignore[no-any-return]
        except KeyError:
            return self.derived.setdefault(name, make(self))  # type: ignore[no-any-return]


def _extra_w(table: OptionTable) -> Floats:
    idle_w = np.array([pool.gpu_type.idle_w for pool in table.pools])
    return np.asarray(table.power_w - table.gpus * idle_w[table.pool])


def option(table: OptionTable, k: int) -> Option:
    """Return row k as an `Option`; a current row gives the very option that the job runs on."""
    allocation = table.jobs[int(table.job[k])].allocation
    if table.current[k] and allocation is not None:
        return allocation.option
    return Option(
        pool=int(table.pool[k]),
        gpus=int(table.gpus[k]),
        span=SPANS[int(table.span[k])],
        clock=float(table.clock[k]),
        batch=float(table.batch[k]),
        width=int(table.width[k]),
        rate=float(table.rate[k]),
        power_w=float(table.power_w[k]),
    )


def build(
    round: Round, *, elastic: bool = True, prune: bool = True, mind_power: bool | None = None
) -> OptionTable:
    """Return all options of a round's live jobs.

    Elastic jobs may take the pool's ladder of GPU counts (powers of two in a node, then node size
    times powers of two) within their limits, or what the user asked for; every clock of the GPU
    type; and of the profile's batches the one with the best rate for that GPU count and clock (a
    batch uses no shared resource). A rigid profile has its requested GPUs at full clock only. A
    job whose gradient noise is not known keeps its own batch, at full efficiency. Each option is
    assumed to use the fewest nodes that hold its GPUs. Where the pool has several racks and the
    profile says what crossing them costs, GPUs of several nodes have rows of span ``rack``, if a
    rack has so many, beside those of span ``cluster``, which count as crossing.

    Jobs about which nothing changed since the last table for the same cluster keep their rows.

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
    memory = kept_options(round.cluster, elastic=elastic, prune=prune)
    rows, changes = memory.look_up(round, mind_power=mind_power)
    changed = [j for j, known in enumerate(rows) if known is None]
    if changed:
        states, shapes = [round.jobs[j] for j in changed], pool_shapes(round.cluster)
        choices = _choices(round, states, shapes, elastic, (prune, mind_power))
        _prepare(choices)
        for j, state, of_job in zip(changed, states, choices, strict=True):
            rows[j] = _job_rows(round, state, of_job, shapes)
    complete = [of_job for of_job in rows if of_job is not None]
    before = memory.keep(complete, mind_power=mind_power)
    columns = _joined(round, complete) if before is None else before
    memory.table = _table(columns, round, complete, changes)
    return memory.table


def _job_rows(
    round: Round, state: JobState, choices: Sequence[Choice], shapes: Sequence[PoolShape]
) -> JobRows:
    """Return the rows of one job."""
    own, current = [m.block(request) for m, request in choices], -1
    profile = round.profiles[state.job.profile]
    if state.allocation is not None:
        pool = state.allocation.option.pool
        known = next((m for m, _ in choices if m.shape.index == pool), None)
        if known is None and shapes[pool].pool.gpu_type.name in profile.throughput:
            known = menu(profile, shapes[pool])
        node_rack = round.cluster.topology.node_rack
        racks = len({int(node_rack[node]) for node, _ in state.allocation.placement})
        own, current = with_current(own, state, state.allocation, racks, known)
    rows = sum(block.shape[1] for block in own)
    return JobRows(state.job, state.allocation, state.noise, profile, own, rows, current)


def _choices(
    round: Round,
    jobs: Sequence[JobState],
    shapes: Sequence[PoolShape],
    elastic: bool,
    flags: tuple[bool, bool],
) -> list[list[Choice]]:
    """Return what each job may choose from, pool by pool; nothing for jobs that must run on."""
    menus: dict[tuple[str, str], list[Menu]] = {}
    choices: list[list[Choice]] = []
    for state in jobs:
        job = state.job
        if state.allocation is not None and not job.preemptible:
            choices.append([])
            continue
        key = (job.profile, job.partition)
        if key not in menus:
            menus[key] = _menus(round.profiles[job.profile], job.partition, shapes)
            for known in menus[key]:
                known.trim()
        choices.append(
            [
                (m, _request(m, state, elastic, flags))
                for m in menus[key]
                if not job.gpu_types or m.shape.pool.gpu_type.name in job.gpu_types
            ]
        )
    return choices


def _menus(profile: Profile, partition: str, shapes: Sequence[PoolShape]) -> list[Menu]:
    """Return the menus of a profile in the pools of a partition that can run it."""
    return [
        menu(profile, shape)
        for shape in shapes
        if shape.pool.partition == partition and shape.pool.gpu_type.name in profile.throughput
    ]


def _request(of: Menu, state: JobState, elastic: bool, flags: tuple[bool, bool]) -> Request:
    """Return what a job may choose from in one pool."""
    job, noise, batches = state.job, state.noise, of.profile.batches
    low = high = job.gpus
    clocks: tuple[float, ...] = FULL
    if elastic and not of.rigid:
        low, high = job.min_gpus or low, job.max_gpus or high
        clocks = of.shape.pool.gpu_type.clocks
    if not elastic or noise is None or not batches or of.rigid:
        batches = (job.batch or of.profile.base_batch,)
    return Request(clocks, batches, low, high, job.gpus, noise, *flags)


def _prepare(choices: Sequence[Sequence[Choice]]) -> None:
    """Compute all blocks that no menu remembers, those of a kind together."""
    missing: dict[tuple[int, object, object], tuple[Menu, dict[Request, None]]] = {}
    for of_job in choices:
        for m, request in of_job:
            if not m.knows(request):
                kind = (id(m), request.clocks, request.batches)
                missing.setdefault(kind, (m, {}))[1][request] = None
    for m, requests in missing.values():
        m.prepare(list(requests))


def _joined(round: Round, kept: Sequence[JobRows]) -> OptionTable:
    """Join the jobs' rows; none is current yet."""
    jobs = round.jobs
    blocks = [block for of_job in kept for block in of_job.blocks]
    whole = np.concatenate([np.empty((COLUMNS, 0)), *blocks], axis=1)
    pool, gpus, span, width = whole[:4].astype(np.int64)
    counts = np.array([of_job.rows for of_job in kept], dtype=np.int64)
    offsets = np.zeros(len(jobs) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return OptionTable(
        jobs=jobs,
        pools=round.cluster.topology.pools,
        start=offsets,
        job=np.repeat(np.arange(len(jobs)), counts),
        pool=pool,
        gpus=gpus,
        span=span,
        width=width,
        clock=whole[4],
        batch=whole[5],
        rate=whole[6],
        power_w=whole[7],
        current=np.zeros(whole.shape[1], dtype=bool),
        must_run=np.zeros(len(jobs), dtype=bool),
    )


def _table(
    columns: OptionTable, round: Round, kept: Sequence[JobRows], changes: Mapping[str, int]
) -> OptionTable:
    """Return the columns with what the jobs run on now."""
    current = np.array([of_job.current for of_job in kept], dtype=np.int64)
    is_current = np.zeros(len(columns), dtype=bool)
    is_current[(columns.start[:-1] + current)[current >= 0]] = True
    must = [s.allocation is not None and not s.job.preemptible for s in round.jobs]
    table = replace(
        columns,
        jobs=round.jobs,
        current=is_current,
        must_run=np.array(must, dtype=bool),
        changes=changes,
    )
    object.__setattr__(table, "derived", columns.derived)
    return table
