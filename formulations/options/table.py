"""All the ways to run the jobs of a round, as one table of parallel columns; and which are beaten.

An option is dominated if another one of the job in the pool has a rate at least as high with no
more GPUs (and, where power matters, no more watts). No plan needs it: swapping it for the other one
stays feasible and is worth as much, as long as values rise with the rate. Being in one rack is a
restriction, so an option of span rack dominates none of another span; nor does one that crosses
racks dominate it.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from ronda.formulations.options.user_rules import OwnRows
from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.cluster import Pool
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.plan import Plan

SPANS = ("node", "rack", "cluster")
NODE, RACK, CLUSTER = range(len(SPANS))

ANYWHERE, SEVERAL = -1, -2
"""The racks of options that are not tied to one, and of current options in several."""

COLUMNS, FLOATS_FROM = 8, 4
POOL, GPUS, SPAN, WIDTH, CLOCK, BATCH, RATE, WATTS = range(COLUMNS)
"""Rows of one float array, which is cheap to join; those before `FLOATS_FROM` are whole numbers.
Those before `RATE` say how a job runs, the others what that gives."""


class OptionTable(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
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
        (K,) whether the row is the current option of the job.
    must_run
        (J,) whether the job may not be stopped or changed (its only row is the current one).
    minds_power
        Whether rows are kept for values that fall with watts, whatever the limits.
    own
        The user's limits over these options, if any.
    rack
        (K,) the rack that each option must be in, or `ANYWHERE`, `SEVERAL`; None if no rule sees
        it.
    node_rack
        (N,) the rack of each node, where options have one; else None.
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
    own: OwnRows | None = None
    rack: Rows | None = None
    node_rack: Rows | None = None

    def __len__(self) -> int:
        """Return the number of options (rows)."""
        return len(self.job)

    @cached_property
    def extra_w(self) -> Floats:
        """(K,) the watts of each option beyond those of its GPUs idle; read-only."""
        idle_w = np.array([pool.gpu_type.idle_w for pool in self.pools])
        found = np.asarray(self.power_w - self.gpus * idle_w[self.pool])
        found.flags.writeable = False
        return found

    def worth(self, values: Floats, chosen: Rows) -> float:
        """Return the values (K,) of rows together, -1 for none, less penalties of soft limits."""
        rows = chosen[chosen >= 0]
        lost = 0.0 if self.own is None else self.own.lost(rows)
        return float(values[rows].sum()) - lost


def option(table: OptionTable, k: int) -> Option:
    """Return row k as an `Option`; a current row gives the job's own option object."""
    return options(table, np.array([k]))[0]


def options(table: OptionTable, rows: Rows) -> list[Option]:
    """Return rows as options (see `option`)."""
    t = table
    columns = (t.pool, t.gpus, t.span, t.width, t.clock, t.batch, t.rate, t.power_w)
    found = [
        Option(
            pool=pool,
            gpus=gpus,
            span=SPANS[span],
            width=width,
            clock=clock,
            batch=batch,
            rate=rate,
            power_w=power_w,
        )
        for pool, gpus, span, width, clock, batch, rate, power_w in zip(
            *(column[rows].tolist() for column in columns), strict=True
        )
    ]
    for i in np.flatnonzero(table.current[rows]).tolist():
        allocation = table.jobs[table.job.item(rows[i])].allocation
        if allocation is not None:
            found[i] = allocation.option
    return found


def running_rows(table: OptionTable) -> Rows:
    """Return (J,) the current row of each job, -1 for jobs that wait."""
    return _by_job(table, table.current.nonzero()[0])


def rows_of(table: OptionTable, plan: Plan) -> Rows:
    """Return (J,) the rows that correspond to an earlier plan's options, -1 for those without one.

    Rates and powers may have changed since. Jobs that must run keep their only row.
    """
    held = {
        j: plan.allocations[state.job.id].option
        for j, state in enumerate(table.jobs)
        if state.job.id in plan.allocations
    }
    columns = (table.pool, table.gpus, table.span, table.width, table.clock, table.batch)
    same = runs_as(columns, np.arange(len(table)), table.job, held)
    if table.rack is not None:
        given = [plan.allocations.get(state.job.id) for state in table.jobs]
        same = same[in_place(table, same, given)]
    must = np.flatnonzero(table.must_run[table.job])
    return _by_job(table, np.union1d(same, must))


def in_place(table: OptionTable, rows: Rows, given: Sequence[Allocation | None]) -> Mask:
    """Return (n,) whether rows may be in the racks that each job is given, by its number."""
    if table.rack is None or table.node_rack is None:
        return np.ones(len(rows), dtype=bool)
    real = np.array([SEVERAL if a is None else rack_of(table.node_rack, a) for a in given], int)
    return np.asarray((table.rack[rows] == ANYWHERE) | (table.rack[rows] == real[table.job[rows]]))


def rack_of(node_rack: Rows, given: Allocation) -> int:
    """Return the rack that an allocation is in, or `SEVERAL`."""
    racks = {int(node_rack[node]) for node, _ in given.placement}
    return racks.pop() if len(racks) == 1 else SEVERAL


def columns_of(options: Iterable[Option]) -> Floats:
    """Return the columns of options, shape (COLUMNS, n)."""
    rows = [
        (o.pool, o.gpus, SPANS.index(o.span), o.width, o.clock, o.batch, o.rate, o.power_w)
        for o in options
    ]
    return np.array(rows, dtype=float).reshape(-1, COLUMNS).T


def runs_as(
    columns: Sequence[Rows | Floats] | Floats, way: Rows, job: Rows, held: Mapping[int, Option]
) -> Rows:
    """Return which rows run their job as an option by number of the job says, ascending.

    Parameters
    ----------
    columns
        Pool, GPUs, span, width, clock and batch of ways to run jobs.
    way, job
        (K,) which of the ways each row is, and whose it is.
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
    """Return (2, B, R) the speed of the fastest rows of each batch that cost no more than each row.

    An option is dominated if one of them gives as much work. They are known without the job, which
    only says how much work a sample of each batch is. Among options that are equal in all, the
    first is kept: so rows of the second kind, equally dear and later, must give more. 0 stands for
    no such row.

    Parameters
    ----------
    speed, power_w
        (R,) samples per second of rows, and watts: all 0 where they do not matter.
    batch, batches
        (R,) the batch of each row by its number, and the number of batches.
    level, below
        (R,) the number of the level of each row, that is of all that it takes but watts,
        ascending; and (L, L) whether a level (second) takes no more of anything than another.
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
"""Pairs of options compared at once, about, and rows of one group: arrays stay in the cache."""


def unbeaten(group: Rows, value: Floats, costs: Floats) -> Mask:
    """Return whether no other option of the same group beats an option, shape (K,).

    An option is beaten by one of its group that has at least its value and costs no more of
    anything; of equal ones the first is kept. In the order of all these, an option comes after
    those that beat it.

    Parameters
    ----------
    group
        (K,) options are compared within a group; equal numbers need not be adjacent.
    value
        (K,) the value of each.
    costs
        (R, K) the use of every resource by each.
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
                for each in bad[1:, own]:  # of the first, what comes before costs no more
                    no_worse = no_worse & (each[:, None, before] <= each[:, some, None])
                kept[own[:, some]] = ~no_worse.any(axis=-1)
    return kept
