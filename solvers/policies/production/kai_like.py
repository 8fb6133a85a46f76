"""KAI-like: fair shares by water filling, then allocate, consolidate, reclaim, preempt."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from ronda.solvers.policies.production.floor import eligible
from ronda.solvers.policies.production.quota_tree import EXACT, Branch
from ronda.solvers.policies.production.resources import Amounts, amounts, capacity
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
                for option in session.floor.room.ways(work.state):
                    if action(work, option, amounts(round, work.state.job, option)):
                        session.queues[work.leaf].remove(work)
                        break
        session.resume()
        return rest(round, Plan(policy=self.name, allocations=session.floor.allocations()), initial)


class _Session(Books):
    """One run of all actions."""

    def __init__(self, policy: KaiLike, round: Round) -> None:
        super().__init__(round)
        self._policy = policy
        self.queues = defaultdict[Branch, list[Workload]](list)
        for state in eligible(round):
            work = self.work(state)
            self.queues[work.leaf].append(work)
        for queue in self.queues.values():
            queue.sort(key=lambda work: work.order)
        self._stuck = dict[int, int]()
        self._set_fair_shares()

    def _set_fair_shares(self) -> None:
        """Set what is guaranteed to every tenant, and its fair share, by resource."""
        round, total = self.round, capacity(self.round)
        stated = {quota.of for tenant in round.site.tenants for quota in tenant.quotas}
        hosts = {of for state in round.jobs for of in state.job.needs}
        self._shared = ({GPUS} | stated | hosts) & total.keys()
        asked = {of: defaultdict[str, float](float) for of in self._shared}
        for name, branch in self.tree.items():
            for of in self._shared if not branch.children else ():
                asked[of][name] += branch.held[of]
        for leaf, queue in self.queues.items():
            for work in queue:
                for option in self.floor.room.ways(work.state)[:1]:
                    for of, amount in self._needed(amounts(round, work.state.job, option)).items():
                        asked[of][leaf.name] += amount
        gpus = total.get(GPUS) or 1.0
        used = {name: held / gpus for name, held in round.used.items()}
        self._fair = {
            of: fair_shares(
                round.site.tenants,
                of,
                total[of],
                asked[of],
                {} if of in hosts else used,
                kappa=self._policy.kappa,
                whole=of not in hosts,
            )
            for of in self._shared
        }
        self._order = {t.name: -t.surplus_order for t in round.site.tenants}

    def _needed(self, need: Amounts) -> dict[str, float]:
        return {of: amount for of, amount in need.items() if of in self._shared and amount > 0}

    def _fair_share(self, branch: Branch, of: str) -> float:
        return self._fair[of].get(branch.name, math.inf)

    def in_order(self) -> Iterator[Workload]:
        """Yield the waiting jobs, each time that of the queue which comes first."""
        left = {leaf: list(queue) for leaf, queue in self.queues.items() if queue}
        while left:
            checkpoint()
            roots = list(dict.fromkeys(leaf.root for leaf in left))
            leaf = self._first(roots, left)
            yield left[leaf].pop(0)
            if not left[leaf]:
                del left[leaf]

    def _first(self, siblings: Sequence[Branch], left: Mapping[Branch, list[Workload]]) -> Branch:
        """Return the leaf that comes first, from some siblings down."""
        waiting = [each for each in siblings if any(leaf in left for leaf in each.leaves)]
        branch = min(waiting, key=lambda each: self._rank(each, left))
        return self._first(branch.children, left) if branch.children else branch

    def _rank(
        self, branch: Branch, left: Mapping[Branch, list[Workload]]
    ) -> tuple[bool, bool, int, float]:
        """Return the order of siblings: below the fair share, within quota, order, least share."""
        held = branch.held
        leaf = next(each for each in branch.leaves if each in left)
        ways = self.floor.room.ways(left[leaf][0].state)
        need = self._needed(amounts(self.round, left[leaf][0].state.job, ways[0]) if ways else {})
        fair = {of: self._fair_share(branch, of) for of in need}
        below = all(held[of] + EXACT < fair[of] for of in need)
        share = max((held[of] / fair[of] if fair[of] else math.inf for of in need), default=0.0)
        order = self._order.get(branch.name, 0)
        return not below, not self._within(branch, need), order, share

    def _within(self, branch: Branch, need: Amounts) -> bool:
        """Return whether a tenant stays within what is guaranteed to it with more."""
        return all(branch.held[of] + x <= branch.guaranteed(of) + EXACT for of, x in need.items())

    def start(self, work: Workload, option: Option, need: Amounts) -> bool:
        """Start a job if there is room."""
        given = self.floor.way(work.state, option)
        if given is None:
            return False
        self.floor.start(work.state, given)
        self.began.add(work.state.job.id)
        self.admit(work, given.option, self.round.now_s)
        return True

    def _victims(self) -> list[Workload]:
        """Return the jobs that may be stopped or moved, the latest started first."""
        now_s, least_s = self.round.now_s, self._policy.min_run_s
        old = [each for each in self.stoppable() if each.since_s + least_s <= now_s]
        return sorted(old, key=lambda each: (-each.since_s, each.state.job.id))

    def consolidate(self, work: Workload, option: Option, need: Amounts) -> bool:
        """Move jobs so that a job fits, if all of them find room elsewhere.

        No job is tried after one of as few GPUs has failed.
        """
        room, least = self.floor.room, self._stuck.get(option.pool, math.inf)
        free = room.nodes(option.pool).total
        if not option.gpus <= free or option.gpus >= least or not room.allows(work.state, option):
            return False
        movable = [w for w in self._victims() if w.option and w.option.pool == option.pool]
        for count in range(1, min(len(movable), MOST_MOVED) + 1):
            checkpoint()
            moved = movable[:count]
            room = self.floor.room_without({each.state.job.id for each in moved})
            given = room.way(work.state, option)
            if given is None:
                continue
            room.take(work.state, given)
            again = list[Allocation]()
            for each in moved:
                place = room.fit(each.state)
                if place is None:
                    break
                again.append(place)
            else:
                self.evict(moved)
                for each, place in zip((work, *moved), (given, *again), strict=True):
                    self.floor.start(each.state, place)
                    self.began.add(each.state.job.id)
                    self.admit(each, place.option, self.round.now_s)
                return True
        self._stuck[option.pool] = option.gpus
        return False

    def reclaim(self, work: Workload, option: Option, need: Amounts) -> bool:
        """Stop jobs of tenants above their shares for a tenant that stays within its fair share."""
        leaf, need = work.leaf, self._needed(need)

        def fair(branch: Branch) -> bool:
            """Return whether a tenant stays within its fair share with the job."""
            shares = {of: self._fair_share(branch, of) for of in need}
            return all(branch.held[of] + x <= shares[of] + EXACT for of, x in need.items())

        def gives(each: Workload) -> bool:
            """Return whether a job's tenant is above its share, and the head's stays within it."""
            ours, theirs = leaf.below_meeting(each.leaf)
            within, giver = self._within(ours[-1], need), theirs[-1]
            return all(map(fair, ours)) and any(
                giver.held[of] > most + EXACT
                for of in need
                for quota in [giver.guaranteed(of)]
                for most in [quota if within else max(quota, self._fair_share(giver, of))]
            )

        if not fair(leaf):
            return False
        others = (each for each in self._victims() if each.leaf is not leaf and gives(each))
        return self._start_instead(work, option, others)

    def preempt(self, work: Workload, option: Option, need: Amounts) -> bool:
        """Stop jobs of the same tenant of lower priority."""
        own = [w for w in self._victims() if w.leaf is work.leaf and w.rank < work.rank]
        return self._start_instead(work, option, iter(sorted(own, key=lambda each: each.rank)))

    def _start_instead(self, work: Workload, option: Option, order: Iterator[Workload]) -> bool:
        """Start a job in place of the first of some jobs that suffice; return whether any do."""

        def fits(victims: Sequence[Workload]) -> bool:
            stopped = [each.state for each in victims]
            return self.floor.way(work.state, option, stopped) is not None

        victims = fewest(order, fits)
        if not victims:
            return False
        self.evict(victims)
        return self.start(work, option, {})
