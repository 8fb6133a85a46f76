"""The options of the jobs of a round, as one table of parallel columns, and dominated options.

An option is dominated if another option of the job in the pool has a rate at least as high with no
more GPUs (and, where power matters, no more watts). No plan needs a dominated option: a plan with
the other option in its place stays feasible and has at least the same value, as long as values rise
with the rate. One rack is a restriction, so an option of span rack dominates no option of another
span; nor does an option that crosses racks dominate it.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from ronda.formulations.options.stated_rows import StatedRows
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.cluster import Pool
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.plan import Plan

SPANS = ("node", "rack", "cluster")
NODE, RACK, CLUSTER = range(len(SPANS))

ANYWHERE, SEVERAL = -1, -2
"""The rack numbers of options that are not tied to a rack, and of current options in several."""

COLUMNS, FLOATS_FROM = 9, 4
POOL, GPUS, SPAN, WIDTH, CLOCK, BATCH, ASKED, RATE, WATTS = range(COLUMNS)
"""The rows of one float array, which is cheap to join. Rows before `FLOATS_FROM` are integers.
Rows before `RATE` say how a job runs; the others say how fast, and with how much power."""


class OptionTable(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """The options of a round, in the form that every solver reads.

    Rows are sorted by job; the rows of job j are ``start[j]:start[j + 1]`` (possibly none). A job
    may always stay idle, which has no row.

    Attributes
    ----------
    jobs
        The live jobs (J,), running ones first, as in ``round.jobs``.
    pools
        The cluster's pools (P,).
    start
        The offsets of each job's rows, shape (J + 1,).
    job, pool, gpus, span, width
        The indices of job and pool, the GPUs, the index into `SPANS`, and the number of fused
        models, (K,) each.
    clock, batch
        The clock as a fraction of the maximum, and the global batch size, (K,) each.
    rate
        The expected work per second, shape (K,).
    power_w
        The watts of all the job's GPUs while it progresses, shape (K,).
    current
        Whether the row is the current option of the job, shape (K,).
    must_run
        Whether the job may not be stopped or changed (its only row is the current one), (J,).
    minds_power
        Whether rows are kept for values that fall with watts, whatever the limits.
    own
        The user's limits on these options, if any.
    rack
        The rack (K,) that each option must be in, or `ANYWHERE`, `SEVERAL`; None if no rule reads
        racks.
    node_rack
        The rack of each node (N,), if options have racks; else None.
    asked
        The GPUs that compute, shape (K,); None if all do in all options.
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
    minds_power: bool = False
    own: StatedRows | None = None
    rack: Rows | None = None
    node_rack: Rows | None = None
    asked: Floats | None = None

    def __len__(self) -> int:
        """Return the number of options (rows)."""
        return len(self.job)

    @cached_property
    def extra_w(self) -> Floats:
        """The watts that each option draws beyond its idle GPUs, shape (K,), read-only."""
        idle_w = np.array([pool.gpu_type.idle_w for pool in self.pools])
        found = np.asarray(self.power_w - self.own_gpus * idle_w[self.pool])
        found.flags.writeable = False
        return found

    @cached_property
    def slices(self) -> Floats | None:
        """The GPUs of each option by memory and by compute slices, (2, K); None without parts.

        A fraction of a GPU counts alike in both.
        """
        cut = [j for j, s in enumerate(self.jobs) if s.job.part is not None or s.job.share]
        if not cut:
            return None
        found = np.tile(self.gpus.astype(float), (2, 1))
        for j in cut:
            job = self.jobs[j].job
            for k in range(self.start[j], self.start[j + 1]):
                gpu_type = self.pools[self.pool[k]].gpu_type
                ways, profile = gpu_type.ways, gpu_type.profile(job.part)
                found[:, k] = job.share or 1.0
                if ways is not None and profile is not None:
                    found[:, k] = profile.memory / ways.memory, profile.compute / ways.compute
        found.flags.writeable = False
        return found

    @property
    def own_gpus(self) -> Floats | Rows:
        """The GPUs that options count for (`Option.own_gpus`), those of arrays whole, (K,)."""
        return self.gpus if self.slices is None else self.slices[1]

    def most_together(self, rows: Rows, amounts: Floats | Rows) -> float:
        """Return the most of `amounts` (n,) that jobs have together, each in one of `rows` (n,)."""
        each = np.zeros(len(self.jobs))
        np.maximum.at(each, self.job[rows], amounts)
        return float(each.sum())

    def worth(self, values: Floats, chosen: Rows) -> float:
        """Return the sum of `values` (K,) of `chosen` rows (-1: none), less soft penalties."""
        rows = chosen[chosen >= 0]
        lost = 0.0 if self.own is None else self.own.lost(rows)
        return float(values[rows].sum()) - lost


def option(table: OptionTable, k: int) -> Option:
    """Return row k as an `Option`; a current row gives the job's own option object."""
    return options(table, np.array([k]))[0]


def options(table: OptionTable, rows: Rows) -> list[Option]:
    """Return the given rows as options (see `option`)."""
    t = table
    asked = t.gpus if t.asked is None else t.asked
    columns = (t.pool, t.gpus, t.span, t.width, t.clock, t.batch, asked, t.rate, t.power_w)
    found = [
        Option(
            pool=pool,
            gpus=gpus,
            asked=None if own == gpus else int(own),
            span=SPANS[span],
            width=width,
            clock=clock,
            batch=batch,
            rate=rate,
            power_w=power_w,
        )
        for pool, gpus, span, width, clock, batch, own, rate, power_w in zip(
            *(column[rows].tolist() for column in columns), strict=True
        )
    ]
    if table.slices is not None:
        for i, k in enumerate(rows.tolist()):
            job = table.jobs[table.job.item(k)].job
            if job.part is not None or job.share is not None:
                found[i] = msgspec.structs.replace(
                    found[i], part=job.part, share=float(table.slices[1, k])
                )
    for i in np.flatnonzero(table.current[rows]).tolist():
        allocation = table.jobs[table.job.item(rows[i])].allocation
        if allocation is not None:
            found[i] = allocation.option
    return found


def running_rows(table: OptionTable) -> Rows:
    """Return the current row of each job, -1 for jobs that wait, shape (J,)."""
    return _by_job(table, table.current.nonzero()[0])


def rows_of(table: OptionTable, plan: Plan) -> Rows:
    """Return the row of each job that matches its option in an earlier plan, or -1, shape (J,).

    Rates and powers may have changed since. Jobs that must run keep their only row.
    """
    held = {
        j: plan.allocations[state.job.id].option
        for j, state in enumerate(table.jobs)
        if state.job.id in plan.allocations
    }
    asked = table.gpus if table.asked is None else table.asked
    columns = (table.pool, table.gpus, table.span, table.width, table.clock, table.batch, asked)
    same = runs_as(columns, np.arange(len(table)), table.job, held)
    if table.rack is not None:
        given = [plan.allocations.get(state.job.id) for state in table.jobs]
        same = same[in_place(table, same, given)]
    must = np.flatnonzero(table.must_run[table.job])
    return _by_job(table, np.union1d(same, must))


def in_place(table: OptionTable, rows: Rows, given: Sequence[Allocation | None]) -> Mask:
    """Return whether each row may be in the rack of its job's allocation in `given`, shape (n,)."""
    if table.rack is None or table.node_rack is None:
        return np.ones(len(rows), dtype=bool)
    real = np.array([SEVERAL if a is None else rack_of(table.node_rack, a) for a in given], int)
    return np.asarray((table.rack[rows] == ANYWHERE) | (table.rack[rows] == real[table.job[rows]]))


def rack_of(node_rack: Rows, given: Allocation) -> int:
    """Return the rack that holds an allocation, or `SEVERAL`."""
    racks = {int(node_rack[node]) for node, _ in given.placement}
    return racks.pop() if len(racks) == 1 else SEVERAL


def columns_of(options: Iterable[Option]) -> Floats:
    """Return the columns of options, shape (COLUMNS, n)."""
    rows = [
        (o.pool, o.gpus, SPANS.index(o.span), o.width, o.clock, o.batch, o.computing, *drawn)
        for o in options
        for drawn in [(o.rate, o.power_w)]
    ]
    return np.array(rows, dtype=float).reshape(-1, COLUMNS).T


def runs_as(
    columns: Sequence[Rows | Floats] | Floats, way: Rows, job: Rows, held: Mapping[int, Option]
) -> Rows:
    """Return the ascending rows that run their job in the same way as its option in `held`.

    Parameters
    ----------
    columns
        The pool, GPUs, span, width, clock, batch and computing GPUs of ways to run jobs.
    way, job
        The way and the job of each row, (K,) each.
    held
        The options by the number of the job.
    """
    if not held:
        return np.empty(0, dtype=np.int64)
    wanted = np.full((RATE, max(held) + 1), np.nan)
    wanted[:, list(held)] = columns_of(held.values())[:RATE]
    rows = np.flatnonzero(job < wanted.shape[1])
    for column, want in zip(columns, wanted, strict=False):
        rows = rows[column[way[rows]] == want[job[rows]]]
    return rows


def _by_job(table: OptionTable, rows: Rows) -> Rows:
    chosen = np.full(len(table.jobs), -1, dtype=np.int64)
    chosen[table.job[rows]] = rows
    return chosen


def rivals(
    speed: Floats, batch: Rows, batches: int, level: Rows, below: Mask, power_w: Floats
) -> Floats:
    """Return the speeds of the fastest rivals in each batch, the rows that cost no more, (2, B, R).

    An option is dominated if one of its rivals gives as much work. Rivals do not depend on the job,
    which only determines the work per sample of each batch. Among equal options the first is kept.
    So there are two kinds of rivals: those of the second kind cost the same and come later, and
    must give more work. 0 stands for no rival.

    Parameters
    ----------
    speed, power_w
        The samples per second and the watts of rows, (R,) each; all watts are 0 where they do not
        matter.
    batch, batches
        The index of the batch of each row (R,), and the number of batches.
    level, below
        The ascending number of the level (R,) of each row, which stands for all that the row takes
        except watts, and whether the second level takes no more of anything than the first, (L, L).
    """
    dear = below[level[:, None], level] & (power_w <= power_w[:, None])  # [r, i] i costs no more
    later = (
        (level == level[:, None]) & (power_w == power_w[:, None]) & ~np.tri(len(speed), dtype=bool)
    )
    np.fill_diagonal(dear, False)
    found = np.zeros((2, batches, len(speed)))
    for b in range(batches):
        own = np.flatnonzero(batch == b)
        for kind, counts in zip(found, (dear & ~later, later), strict=True):
            kind[b] = np.where(counts[:, own], speed[own], 0.0).max(axis=1, initial=0.0)
    return found


PAIRS, BLOCK = 2**18, 256
"""The approximate number of pairs of options compared at once, and the number of rows of a group
in a block, so that arrays stay in the cache."""


def unbeaten(group: Rows, value: Floats, costs: Floats) -> Mask:
    """Return whether no other option of the same group beats an option, shape (K,).

    An option is beaten by another option of its group that has at least its value and costs no more
    of anything; of equal options the first is kept. The options are sorted by costs and value, so
    that an option comes after those that beat it.

    Parameters
    ----------
    group
        The number of each option's group, shape (K,); equal numbers need not be adjacent.
    value
        The value of each option, shape (K,).
    costs
        The use of every resource by each option, shape (R, K).
    """
    bad = np.concatenate([costs, -value[None]])
    order = np.lexsort((*bad[::-1], group))
    ends = np.flatnonzero(np.diff(group[order], append=-1) != 0) + 1
    size, kept = np.diff(ends, prepend=0), np.ones(len(group), dtype=bool)
    for n in np.unique(size[size > 1]).tolist():
        start, step = (ends - size)[size == n], max(1, PAIRS // (n * min(n, BLOCK)))
        for at in range(0, len(start), step):
            own = order[start[at : at + step, None] + np.arange(n)]
            for first in range(0, n, BLOCK):
                checkpoint()
                some = np.arange(first, min(first + BLOCK, n))
                before = np.flatnonzero(kept[own[:, : some[-1] + 1]].any(axis=0))
                no_worse = before < some[:, None]
                for each in bad[1:, own]:  # rows that come before cost no more of the first
                    no_worse = no_worse & (each[:, None, before] <= each[:, some, None])
                kept[own[:, some]] = ~no_worse.any(axis=-1)
    return kept
