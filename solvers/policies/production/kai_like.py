"""KAI-like: fair shares by water filling, then allocate, consolidate, reclaim, preempt."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

from msgspec import Meta

from ronda.formulations.sleeping import rest
from ronda.formulations.tenants.fair_shares import fair_shares
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.job import Allocation, Option
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.site import GPUS
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.policies.production.floor import capacity
from ronda.solvers.policies.production.quota_tree import EXACT, Amounts, Branch
from ronda.solvers.policies.production.workloads import Books, Workload, fewest

MOST_MOVED = 8
"""The number of jobs up to which consolidation moves jobs for another."""


@dataclass(frozen=True)
class KaiLike(TimelyPolicy):
    """Start jobs of tenants below their fair shares first, and stop or move others for them.

    Four actions follow each other (docs/site.md): jobs start in order of their queues; for a job
    that finds free GPUs in pieces others move (consolidation); a tenant below its fair share stops
    jobs of tenants above theirs (reclaim); and a job stops jobs of its own tenant of lower priority
    (preemption).

    Parameters
    ----------
    kappa
        How much past use (`Round.used`) counts in fair shares of what is left when all guarantees
        are met.
    min_run_s
        Seconds for which a job that has started is not stopped or moved, besides those of classes
        and tenants.
    """

    kappa: Annotated[float, Meta(ge=0)] = 1.0
    min_run_s: Annotated[float, Meta(ge=0)] = 0.0

    name: ClassVar[str] = "kai-like"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Decide a round by the four actions."""
        session = _Session(self, round)
        for action in (session.start, session.consolidate, session.reclaim, session.preempt):
            for work in session.in_order():
                if any(action(work, option) for option in session.room.ways(work.state)):
                    session.queues[work.leaf].remove(work)
        session.resume()
        return rest(round, Plan(policy=self.name, allocations=session.allocations()), initial)


class _Session(Books):
    """One run of all actions."""

    def __init__(self, policy: KaiLike, round: Round) -> None:
        super().__init__(round)
        self._policy, self._stuck = policy, dict[int, int]()
        self.queues = defaultdict[Branch, list[Workload]](list)
        for work in map(self.work, round.waiting):
            self.queues[work.leaf].append(work)
        for queue in self.queues.values():
            queue.sort(key=lambda work: work.order)
        self._set_fair_shares(capacity(round))

    def _set_fair_shares(self, total: Amounts) -> None:
        """Set the fair shares of all tenants by resource; `total` is what there is of each."""
        round, tenants = self.round, self.round.site.tenants
        stated = {quota.of for tenant in tenants for quota in tenant.quotas}
        hosts = {of for state in round.jobs for of in state.job.needs}
        self._shared = ({GPUS} | stated | hosts) & total.keys()
        asked = {of: {name: b.held[of] for name, b in self.tree.items()} for of in self._shared}
        for leaf, queue in self.queues.items():
            for work in queue:
                for of, amount in self._first_need(work).items():
                    asked[of][leaf.tenant.name] += amount
        used = {name: held / (total.get(GPUS) or 1.0) for name, held in round.used.items()}
        share = partial(fair_shares, tenants, kappa=self._policy.kappa)
        self._fair = {
            of: share(of, total[of], asked[of], {} if of in hosts else used, whole=of not in hosts)
            for of in self._shared
        }

    def _need(self, work: Workload, option: Option) -> Amounts:
        """Return what a job would hold of the resources that are shared."""
        need = self.need(work, option)
        return {of: amount for of, amount in need.items() if of in self._shared and amount > 0}

    def _first_need(self, work: Workload) -> Amounts:
        ways = self.room.ways(work.state)
        return self._need(work, ways[0]) if ways else {}

    def _fair_share(self, branch: Branch, of: str) -> float:
        return self._fair[of].get(branch.tenant.name, math.inf)

    def in_order(self) -> Iterator[Workload]:
        """Yield the waiting jobs, each time that of the queue which comes first."""
        left = {leaf: list(queue) for leaf, queue in self.queues.items() if queue}
        while left:
            checkpoint()
            first, siblings = None, list(dict.fromkeys(leaf.path[-1] for leaf in left))
            while siblings:
                heads = (
                    (each, [left[b][0] for b in each.leaves if b in left]) for each in siblings
                )
                waiting = {each: works[0] for each, works in heads if works}
                first = min(waiting, key=lambda each: self._rank(each, waiting[each]))
                siblings = first.children
            assert first is not None
            yield left[first].pop(0)
            if not left[first]:
                del left[first]

    def _rank(self, branch: Branch, work: Workload) -> tuple[bool, bool, int, float]:
        """Return the order of siblings: below the fair share, within quota, order, least share."""
        need, held = self._first_need(work), branch.held
        fair = {of: self._fair_share(branch, of) for of in need}
        below = all(held[of] + EXACT < fair[of] for of in need)
        share = max((held[of] / fair[of] if fair[of] else math.inf for of in need), default=0.0)
        within = _within(branch, need, branch.guaranteed)
        return not below, not within, -branch.tenant.surplus_order, share

    def start(self, work: Workload, option: Option) -> bool:
        """Start a job if there is room."""
        given = self.way(work.state, option)
        if given is not None:
            self._begin(work, given)
        return given is not None

    def _begin(self, work: Workload, given: Allocation) -> None:
        self.take(work.state, given)
        self.began.add(work.id)
        self.admit(work, given.option, self.round.now_s)

    def _victims(self) -> list[Workload]:
        """Return the jobs that may be stopped or moved, the latest started first."""
        now_s, least_s = self.round.now_s, self._policy.min_run_s
        old = [each for each in self.stoppable() if each.since_s + least_s <= now_s]
        return sorted(old, key=lambda each: (-each.since_s, each.id))

    def consolidate(self, work: Workload, option: Option) -> bool:
        """Move jobs so that a job fits, if all of them find room elsewhere.

        No job is tried after one of as few GPUs has failed.
        """
        room, least = self.room, self._stuck.get(option.pool, math.inf)
        free = room.nodes(option.pool).total
        if not option.gpus <= free or option.gpus >= least or not room.allows(work.state, option):
            return False
        movable = [w for w in self._victims() if w.option and w.option.pool == option.pool]
        for count in range(1, min(len(movable), MOST_MOVED) + 1):
            checkpoint()
            moved = movable[:count]
            room = self.room_without({each.id for each in moved})
            given = room.way(work.state, option)
            if given is None:
                continue
            room.take(work.state, given)
            again = [place for each in moved if (place := room.fit(each.state)) is not None]
            if len(again) == count:
                self.evict(moved)
                for each, place in zip((work, *moved), (given, *again), strict=True):
                    self._begin(each, place)
                return True
        self._stuck[option.pool] = option.gpus
        return False

    def reclaim(self, work: Workload, option: Option) -> bool:
        """Stop jobs of tenants above their shares for a tenant that stays within its fair share."""
        leaf, need = work.leaf, self._need(work, option)

        def fair(branch: Branch) -> bool:
            return _within(branch, need, {of: self._fair_share(branch, of) for of in need})

        def gives(each: Workload) -> bool:
            """Return whether a job's tenant is above its share, and the head's stays within it."""
            ours, theirs = leaf.below_meeting(each.leaf)
            within, giver = _within(ours[-1], need, ours[-1].guaranteed), theirs[-1]
            return all(map(fair, ours)) and any(
                giver.held[of] > giver.guaranteed[of] + EXACT
                and (within or giver.held[of] > self._fair_share(giver, of) + EXACT)
                for of in need
            )

        others = (each for each in self._victims() if each.leaf is not leaf and gives(each))
        return fair(leaf) and self._start_instead(work, option, others)

    def preempt(self, work: Workload, option: Option) -> bool:
        """Stop jobs of the same tenant of lower priority."""
        own = [w for w in self._victims() if w.leaf is work.leaf and w.rank < work.rank]
        return self._start_instead(work, option, sorted(own, key=lambda each: each.rank))

    def _start_instead(self, work: Workload, option: Option, order: Iterable[Workload]) -> bool:
        """Start a job in place of the first of some jobs that suffice; return whether any do."""
        victims = fewest(order, partial(self.has_room, work, option))
        if victims:
            self.evict(victims)
        return bool(victims) and self.start(work, option)


def _within(branch: Branch, need: Amounts, most: Amounts) -> bool:
    """Return whether a tenant holds at most some amounts with a job."""
    return all(branch.held[of] + x <= most[of] + EXACT for of, x in need.items())
