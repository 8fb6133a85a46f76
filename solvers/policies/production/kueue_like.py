"""Kueue-like: the heads of all queues in cycles, under quotas that are lent and borrowed."""

import math
from bisect import insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal, NamedTuple

import msgspec

from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.job import Option
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.policies.production.kueue_victims import (
    Reclaim,
    VictimSearch,
    Within,
    classical,
    fair,
)
from ronda.solvers.policies.production.quota_tree import Amounts, Branch
from ronda.solvers.policies.production.workloads import Books, Workload


class Admitted(PlanMemory, frozen=True):
    """The jobs that hold quota without nodes: their pools, and the times of their admission."""

    key: ClassVar[str] = "kueue_admitted"

    pools: dict[str, int] = {}
    since_s: dict[str, float] = {}


@dataclass(frozen=True)
class KueueLike(TimelyPolicy):
    """Admit the heads of all queues in cycles, under quotas that tenants lend and borrow.

    Each tenant without tenants below has a queue: by priority, then submission (an evicted job
    keeps its own). In each cycle the head of each queue is given the first GPU type with quota and
    nodes. Heads are admitted in order. A head for which others must go evicts them. Cycles are
    repeated until nothing changes. The rules and the defaults are Kueue's (docs/site.md).

    Parameters
    ----------
    strategy
        Whether a head that does not fit blocks its queue (strict) or is passed over (best-effort).
    fair
        Whether heads and victims follow dominant shares. Otherwise those that borrow least go
        first, and victims follow priorities.
    reclaim
        The jobs of other queues, of those that borrow, that a head may evict: none, those of lower
        priority, or any.
    within
        The jobs of its own queue that a head may evict: none, those of lower priority, or also
        later ones of the same priority.
    borrow_within
        Whether a head that will borrow may evict jobs of lower priority from other queues:
        ``never``, ``lower``, or ``lower:RANK`` for those of at most that rank. Not with `fair`.
    tas
        Whether a job is admitted only if there are nodes for it (topology-aware scheduling).
        Otherwise quota suffices, and a job without nodes holds its quota while it waits.
    """

    strategy: Literal["best-effort", "strict"] = "best-effort"
    fair: bool = False
    reclaim: Reclaim = "never"
    within: Within = "never"
    borrow_within: Annotated[str, msgspec.Meta(pattern=r"^(never|lower(:-?\d+)?)$")] = "never"
    tas: bool = True

    name: ClassVar[str] = "kueue-like"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Decide a round by cycles."""
        cycles = _Cycles(self, round, Admitted.recall(initial))
        cycles.run()
        memory = {} if self.tas else cycles.place().noted()
        cycles.resume()
        plan = Plan(policy=self.name, allocations=cycles.allocations(), memory=memory)
        return rest(round, plan, initial)


class _Nominee(NamedTuple):
    """A head with the option that it is nominated for, and the jobs that must go for it.

    ``victims`` is None if nobody must, and ``reach`` is the least branch whose quota holds it.
    """

    head: Workload
    option: Option
    need: Amounts
    reach: Branch
    victims: Sequence[Workload] | None


class _Cycles(Books):
    """The cycles of a round."""

    def __init__(self, policy: KueueLike, round: Round, before: Admitted) -> None:
        super().__init__(round)
        self.policy = policy
        self._queues = defaultdict[tuple[str, str], list[Workload]](list)
        self._parked = defaultdict[Branch, list[Workload]](list)
        self._blocked = set[tuple[str, str]]()
        self._reserved: list[tuple[Branch, Amounts]] = []
        for work in map(self.work, round.waiting):
            pool = None if policy.tas else before.pools.get(work.id)
            option = next((o for o in self.room.ways(work.state) if o.pool == pool), None)
            if option is None:
                self._queues[_queue_of(work)].append(work)
            else:
                self.admit(work, option, before.since_s[work.id])
        for queue in self._queues.values():
            queue.sort(key=lambda work: work.order)

    def run(self) -> None:
        """Run cycles until nothing changes."""
        while heads := [q[0] for key, q in self._queues.items() if q and key not in self._blocked]:
            found = [(head, self._nominate(head)) for head in heads]
            for head, nominee in found:
                if nominee is None:
                    self._pass_over(head)
            claimed = set[str]()
            for each in self._in_order([nominee for _, nominee in found if nominee is not None]):
                checkpoint()
                victims = {work.id for work in each.victims or ()}
                if each.victims is None:
                    self._start(each)
                elif not victims:
                    self._reserve(each)
                    self._pass_over(each.head)
                elif claimed.isdisjoint(victims):
                    claimed |= victims
                    self._evict(each)
            if self.policy.strategy != "strict":  # otherwise the head asks again in each cycle
                self._unreserve()
        self._unreserve()

    def _nominate(self, head: Workload) -> _Nominee | None:
        """Return a head with the first GPU type that fits, else the first that victims free."""
        checkpoint()
        best, rule = None, self.policy
        borrows = rule.borrow_within != "never" or (rule.fair and rule.reclaim != "never")
        for option in self.room.ways(head.state):
            need, leaf = self.need(head, option), head.leaf
            if not leaf.fits(need, idle=True):
                continue
            reach = leaf.reach(need)
            if leaf.fits(need) and self._has_nodes(head, option, ()):
                return _Nominee(head, option, need, reach, None)
            nominal = all(need[of] <= leaf.nominal(of) for of in leaf.counted(need))
            if not (borrows or reach.parent is not None or nominal):
                continue
            victims = self._victims(head, option, need)
            if best is None or (victims and not best.victims):
                best = _Nominee(head, option, need, reach, victims)
        return best

    def _has_nodes(self, head: Workload, option: Option, victims: Sequence[Workload]) -> bool:
        return not self.policy.tas or self.has_room(head, option, victims)

    def _victims(self, head: Workload, option: Option, need: Amounts) -> list[Workload]:
        """Return the jobs that must go so that a head fits, or nobody."""
        rule, nodes = self.policy, partial(self._has_nodes, head, option)
        search = VictimSearch(head, need, self.stoppable(), nodes, rule.within, rule.reclaim)
        if rule.fair:
            return fair(search)
        lower, _, most = rule.borrow_within.partition(":")
        below = min(head.rank, int(most) + 1) if most else head.rank
        return classical(search, below if lower == "lower" else None)

    def _in_order(self, nominees: list[_Nominee]) -> Iterator[_Nominee]:
        """Yield nominees in the order of admission."""
        if not self.policy.fair:
            yield from sorted(nominees, key=lambda each: (each.reach.height, each.head.order))
            return
        while nominees:
            found = self._least_share(nominees[0].head.leaf.path[-1], nominees)
            assert found is not None
            yield found
            nominees.remove(found)

    def _least_share(self, branch: Branch, left: Sequence[_Nominee]) -> _Nominee | None:
        """Return the nominee that wins from a branch down: who borrows nothing, least share."""
        if not branch.children:
            own = [each for each in left if each.head.leaf is branch]
            return min(own, key=lambda each: each.head.order, default=None)
        keys = list[tuple[bool, float, tuple[float, float, str], _Nominee]]()
        for child in branch.children:
            found = self._least_share(child, left)
            if found is not None:
                found.head.leaf.add(found.need)
                keys.append((child.above_quota(found.need), child.share(), found.head.order, found))
                found.head.leaf.remove(found.need)
        return min(keys)[-1] if keys else None

    def _start(self, nominee: _Nominee) -> None:
        """Admit a nominee if it still fits."""
        head, option = nominee.head, nominee.option
        if not head.leaf.fits(nominee.need):
            return
        if self.policy.tas:
            given = self.way(head.state, option)
            if given is None:
                return
            self.take(head.state, given)
        self._queues[_queue_of(head)].remove(head)
        self.began.add(head.id)
        self.admit(head, option, self.round.now_s)

    def _evict(self, nominee: _Nominee) -> None:
        """Evict the victims of a nominee and admit it, if it fits without them."""
        head, victims = nominee.head, nominee.victims or ()
        for work in victims:
            work.leaf.remove(work.use)
        fits = head.leaf.fits(nominee.need) and self._has_nodes(head, nominee.option, victims)
        for work in victims:
            work.leaf.add(work.use)
        if not fits:
            return
        self.evict(victims)
        self._start(nominee)
        for work in [*victims, *self._parked.pop(head.leaf.path[-1], [])]:
            insort(self._queues[_queue_of(work)], work, key=lambda each: each.order)
        if self._blocked:
            self._blocked.clear()
            self._unreserve()

    def _pass_over(self, head: Workload) -> None:
        """Leave a head that does not fit aside, or let it block its queue."""
        queue = _queue_of(head)
        if self.policy.strategy == "strict":
            self._blocked.add(queue)
        else:
            self._queues[queue].remove(head)
            self._parked[head.leaf.path[-1]].append(head)

    def _unreserve(self) -> None:
        for leaf, amount in self._reserved:
            leaf.remove(amount)
        self._reserved.clear()

    def _reserve(self, nominee: _Nominee) -> None:
        """Keep quota for a head without victims from later heads of its cycle."""
        leaf, found = nominee.head.leaf, dict[str, float]()
        for of in leaf.counted(nominee.need) if self.policy.reclaim != "any" else ():
            most, borrow = leaf.nominal(of) - leaf.use[of], leaf.quotas[of].borrow
            if nominee.reach is not leaf:
                most += math.inf if borrow is None else borrow
            found[of] = max(0.0, min(nominee.need[of], most))
        leaf.add(found)
        self._reserved.append((leaf, found))

    def place(self) -> Admitted:
        """Give admitted jobs nodes in the order of admission; return those that get none."""
        without = Admitted({}, {})
        for job, work in self.admitted.items():
            assert work.option is not None
            if self.goes_on(work.state):
                continue
            given = self.way(work.state, work.option)
            if given is None:
                without.pools[job], without.since_s[job] = work.option.pool, work.since_s
            else:
                self.take(work.state, given)
        return without


def _queue_of(work: Workload) -> tuple[str, str]:
    return work.leaf.tenant.name, work.state.job.partition
