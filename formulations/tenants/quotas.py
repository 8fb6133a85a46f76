"""Limits on what tenants and groups of jobs hold, as rows and as an account.

Whoever holds more than a limit that was lowered may go on holding it: a limit is the larger of the
stated one and what is held at the decision, so that only growth breaks it (Kueue: over-admission;
Slurm: lowered limits stop nobody).
"""

from functools import cache

import numpy as np

from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.options.table import OptionTable
from ronda.formulations.tenants.amounts import amounts, held, left_s
from ronda.formulations.tenants.lending import SLACK, Loans, state_borrowing
from ronda.formulations.tenants.numbered import ByNumber, there_is
from ronda.formulations.tenants.sharers import Cap, Count, Tree, resources, sharers
from ronda.instances.base import Floats
from ronda.instances.job import Allocation, Job, JobState
from ronda.instances.round import Round


def state_quotas(round: Round, table: OptionTable, values: Floats, sheet: Sheet) -> None:
    """State the rows of the limits of tenants and groups that can bind."""
    counted = cache(lambda count, of: _counted(round, table, count, of))
    for each in sharers(round.site, (state.job for state in round.jobs)):
        numbered = ByNumber(table, each.number)
        for cap in each.caps:
            amount = counted(cap.counts, cap.of)
            use = numbered.use(amount)(cap.first, cap.end)
            there = there_is(round, cap.of) if cap.counts in (Count.HELD, Count.FIRM) else np.inf
            most = max(cap.most, use.now)
            if most < min(use.most, there):
                rows = numbered.rows(cap.first, cap.end)
                sheet.state(cap.name, rows, amount[rows], most)
    tree = Tree(round.site)
    numbered = ByNumber(table, tree.number)
    for of in resources(round.site):
        amount = counted(Count.HELD, of)
        state_borrowing(tree, of, sheet, numbered, amount, there_is(round, of))


def _counted(round: Round, table: OptionTable, count: Count, of: str) -> Floats:
    """Return what a limit counts of each option, shape (K,)."""
    if count is Count.JOBS:
        return 1.0 / table.width
    found = amounts(table, of)
    if count is Count.HELD:
        return found
    each = [_factor(state, count, round.now_s) for state in table.jobs]
    return np.asarray(found * np.array(each, dtype=float)[table.job])


def _factor(state: JobState, count: Count, now_s: float) -> float:
    """Return the factor of what a job holds in a limit that counts only firm jobs, or time."""
    if count is Count.FIRM:
        return float(not state.job.preemptible)
    return left_s(state, now_s)


class Quotas:
    """The account of the limits of tenants and groups (`ronda.formulations.site.accounts`)."""

    def __init__(self, round: Round) -> None:
        self._now_s, self._pools = round.now_s, round.cluster.topology.pools
        self._sharers = sharers(round.site, (state.job for state in round.jobs))
        self._tree = Tree(round.site)
        self._known: dict[tuple[int, ...], list[Cap]] = {}
        held_now: dict[str, dict[str, float]] = {of: {} for of in resources(round.site)}
        self._used: dict[Cap, float] = {}
        for state in round.running:
            given, leaf = state.allocation, state.job.tenant
            if given is None:
                continue
            for cap in self._caps(state.job):
                more = self._amount(state, given, cap.counts, cap.of)
                self._used[cap] = self._used.get(cap, 0.0) + more
            if leaf is not None:
                for of, own in held_now.items():
                    own[leaf] = own.get(leaf, 0.0) + self._amount(state, given, Count.HELD, of)
        self._allowed, self._used = self._used, {}
        self._loans = {of: Loans(self._tree, of, own) for of, own in held_now.items()}

    def _caps(self, job: Job) -> list[Cap]:
        """Return the limits that concern a job."""
        numbers = tuple(each.number(job) for each in self._sharers)
        if numbers not in self._known:
            pairs = zip(self._sharers, numbers, strict=True)
            own = [cap for each, k in pairs for cap in each.caps if cap.first <= k < cap.end]
            self._known[numbers] = own
        return self._known[numbers]

    def _amount(self, state: JobState, given: Allocation, count: Count, of: str) -> float:
        """Return what a limit counts of a job with an allocation."""
        if count is Count.JOBS:
            return 1.0 / given.option.width
        found = held(self._pools[given.option.pool], state.job, given.option, of)
        return found if count is Count.HELD else found * _factor(state, count, self._now_s)

    def fits(self, state: JobState, given: Allocation) -> bool:
        """Return whether all limits allow one more job with an allocation."""
        for cap in self._caps(state.job):
            more = self._amount(state, given, cap.counts, cap.of)
            most = max(cap.most, self._allowed.get(cap, 0.0))
            if more > 0 and self._used.get(cap, 0.0) + more > most + SLACK * max(1.0, most):
                return False
        leaf = state.job.tenant
        return leaf is None or all(
            book.room(leaf, self._amount(state, given, Count.HELD, of))
            for of, book in self._loans.items()
        )

    def take(self, state: JobState, given: Allocation) -> None:
        """Add a job with its allocation, whether or not it fits."""
        for cap in self._caps(state.job):
            more = self._amount(state, given, cap.counts, cap.of)
            self._used[cap] = self._used.get(cap, 0.0) + more
        if state.job.tenant is not None:
            for of, book in self._loans.items():
                book.add(state.job.tenant, self._amount(state, given, Count.HELD, of))


def quotas(round: Round) -> Quotas | None:
    """Return the account of a round's limits on tenants and groups, or None without any."""
    return Quotas(round) if round.site.tenants or round.site.groups else None
