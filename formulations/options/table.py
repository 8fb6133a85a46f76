"""All the ways to run the jobs of a round, as one table of parallel columns."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ronda.formulations.options.grid import COLUMNS, FLOATS_FROM, SPANS
from ronda.formulations.options.job_rows import JobRows, new_rows
from ronda.formulations.options.kept_options import kept_options
from ronda.instances.arrays import Floats
from ronda.instances.cluster import Pool
from ronda.instances.job import JobState, Option
from ronda.instances.round import Round

Value = TypeVar("Value")

NO_ROWS = np.empty((COLUMNS, 0))


class OptionTable(msgspec.Struct, frozen=True, kw_only=True, eq=False):
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
        (`ronda.formulations.options.kept_options`): what building cost, which no solver looks at.
    derived
        What `derive` has made; tables that `build` gives the same jobs and columns share it. A copy
        with other columns begins with an empty one.
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
    changes: Mapping[str, int] = {}
    derived: dict[str, Any] = {}

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
    allocation = table.jobs[table.job.item(k)].allocation
    if table.current[k] and allocation is not None:
        return allocation.option
    return Option(
        pool=table.pool.item(k),
        gpus=table.gpus.item(k),
        span=SPANS[table.span.item(k)],
        clock=table.clock.item(k),
        batch=table.batch.item(k),
        width=table.width.item(k),
        rate=table.rate.item(k),
        power_w=table.power_w.item(k),
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
    jobs = round.jobs
    unknown = [j for j, known in enumerate(rows) if known is None]
    if unknown:
        states = [jobs[j] for j in unknown]
        made = new_rows(round, states, elastic=elastic, prune=prune, mind_power=mind_power)
        for j, of_job in zip(unknown, made, strict=True):
            rows[j] = of_job
    complete = [of_job for of_job in rows if of_job is not None]
    before = memory.keep(complete, mind_power=mind_power)
    if before is None:
        memory.table = _joined(round, jobs, complete, changes)
    else:
        memory.table = _same_columns(before, jobs, complete, changes)
    return memory.table


def _joined(
    round: Round,
    jobs: tuple[JobState, ...],
    kept: Sequence[JobRows],
    changes: Mapping[str, int],
) -> OptionTable:
    """Return the jobs' rows side by side."""
    blocks = [block for of_job in kept for block in of_job.blocks]
    whole = np.concatenate(blocks or [NO_ROWS], axis=1)
    pool, gpus, span, width = whole[:FLOATS_FROM].astype(np.int64)
    counts = np.array([of_job.rows for of_job in kept], dtype=np.int64)
    start = np.zeros(len(jobs) + 1, dtype=np.int64)
    np.add.accumulate(counts, out=start[1:])
    clock, batch, rate, power_w = whole[FLOATS_FROM:]
    return OptionTable(
        jobs=jobs,
        pools=round.cluster.topology.pools,
        start=start,
        job=np.arange(len(jobs)).repeat(counts),
        pool=pool,
        gpus=gpus,
        span=span,
        width=width,
        clock=clock,
        batch=batch,
        rate=rate,
        power_w=power_w,
        current=_current(start, kept),
        must_run=np.array([of_job.must_run for of_job in kept], dtype=bool),
        changes=changes,
    )


def _same_columns(
    before: OptionTable,
    jobs: tuple[JobState, ...],
    kept: Sequence[JobRows],
    changes: Mapping[str, int],
) -> OptionTable:
    """Return the columns with what the jobs run on now."""
    return replace(
        before,
        jobs=jobs,
        current=_current(before.start, kept),
        must_run=np.array([of_job.must_run for of_job in kept], dtype=bool),
        changes=changes,
    )


def _current(start: NDArray[np.int64], kept: Sequence[JobRows]) -> NDArray[np.bool_]:
    """Return (K,) whether the row is what its job runs on now."""
    is_current = np.zeros(start[-1], dtype=bool)
    pairs = zip(start.tolist(), kept, strict=False)
    is_current[[at + of_job.current for at, of_job in pairs if of_job.current >= 0]] = True
    return is_current
