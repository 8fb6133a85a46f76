"""Check of successive plans that looks only at what changed."""

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import chain, compress
from operator import is_not

from ronda.instances.check.option import Examiner
from ronda.instances.check.plan import (
    allocation_violations,
    asleep_after,
    asleep_in_use,
    asleep_violations,
    avoidable,
    base_w,
    capped_racks,
    check_plan,
    cluster_violations,
    discard_violations,
    ending,
    extra_w,
    must_run_violations,
    over_capacity,
    rack_violations,
    waking_w,
)
from ronda.instances.check.sharing import place_of, plan_violations
from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.violation import Violation

RESUM_AFTER = 4096
"""Changes after which sums of watts are made again, so that rounding cannot pile up."""


class Ledger:
    """Checks each plan of a run against the last one that was accepted.

    It finds what `ronda.instances.check.checker.check` finds, but allocations that are the very
    objects that it accepted before are not examined again. Its books are right as long as every
    plan that is applied is accepted, accepted plans had no violation (but "must-run", when a driver
    has to shed load), and completed jobs are released. When the round shows another number of
    running jobs than the books, or another cluster object, the plan is checked from scratch.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        topology = cluster.topology
        self._gpus: list[int] = topology.node_gpus.tolist()
        self._idle_w: list[float] = topology.gpu_idle_w.tolist()
        self._racks = capped_racks(cluster)
        # First the whole cluster, then the racks with a cap.
        self._masks = [[True] * len(self._gpus)] + [mask.tolist() for _, _, mask in self._racks]
        self._held: dict[str, Allocation] = {}
        self._used = [0] * len(self._gpus)
        self._members: Counter[object] = Counter()  # of each array
        self._extra_w = [0.0] * len(self._masks)
        self._asleep: tuple[int, ...] = ()
        self._base_w = self._base(())
        self._changes = 0
        self._examiner: Examiner | None = None

    def check(self, round: Round, plan: Plan) -> list[Violation]:
        """Return every rule that a plan breaks.

        The jobs that run in the round are those of the accepted plan less those released.
        """
        if round.cluster is not self.cluster or len(round.running) != len(self._held):
            return check_plan(round, plan)
        examiner = self._examiner
        if examiner is None or examiner.profiles is not round.profiles:
            examiner = self._examiner = Examiner(self.cluster, round.profiles)
        changed, gone = self._difference(plan)
        states = _states(round, {*changed, *gone, *plan.discarded})
        found = []
        for job_id in changed:
            allocation = plan.allocations[job_id]
            found += allocation_violations(examiner, job_id, states.get(job_id), allocation)
        found += must_run_violations(states.values(), plan)
        found += discard_violations(states, plan)
        if self._members or any(_shares(plan.allocations[i]) for i in changed):
            jobs = {state.job.id: state.job for state in round.jobs}
            found += plan_violations(plan.allocations, jobs)
        found += self._nodes(plan, changed, gone, asleep_after(round, plan))
        return found + self._power(round, plan, changed, gone)

    def accept(self, plan: Plan) -> None:
        """Enter a plan that is applied into the books."""
        changed, gone = self._difference(plan)
        for job_id in (*changed, *gone):
            if job_id in self._held:
                self._enter(self._held.pop(job_id), -1)
        for job_id in changed:
            allocation = self._held[job_id] = plan.allocations[job_id]
            self._enter(allocation, 1)
        if plan.asleep is not None and plan.asleep != self._asleep:
            self._asleep, self._base_w = plan.asleep, self._base(plan.asleep)

    def release(self, job_id: str) -> None:
        """Take a job that the accepted plan runs, and that completed, out of the books."""
        self._enter(self._held.pop(job_id), -1)

    def _difference(self, plan: Plan) -> tuple[list[str], list[str]]:
        held, given = self._held, plan.allocations
        changed = list(compress(given, map(is_not, given.values(), map(held.get, given))))
        return changed, list(held.keys() - given.keys())

    def _enter(self, allocation: Allocation, sign: int) -> None:
        """Add an allocation to the sums, or take it off."""
        for node, change in self._taken([(allocation, sign)]).items():
            self._used[node] += change
        if allocation.array is not None:
            place = place_of(allocation)
            self._members[place] += sign
            if not self._members[place]:
                del self._members[place]
        self._changes += 1
        if self._changes % RESUM_AFTER == 0:
            held = self._held.values()
            for k, mask in enumerate(self._masks):
                self._extra_w[k] = sum(extra_w(a, self._idle_w, mask) for a in held)
            return
        for k, mask in enumerate(self._masks):
            self._extra_w[k] += sign * extra_w(allocation, self._idle_w, mask)

    def _taken(self, entries: Iterable[tuple[Allocation, int]]) -> dict[int, int]:
        """Return by how much the GPUs in use on nodes change; an array counts once."""
        taken: dict[int, int] = {}
        members: dict[object, int] = {}
        for allocation, sign in entries:
            if allocation.array is not None:
                place = place_of(allocation)
                before = members.get(place, self._members[place])
                members[place] = before + sign
                sign = (before + sign > 0) - (before > 0)
            for node, count in allocation.placement:
                taken[node] = taken.get(node, 0) + sign * count
        return taken

    def _base(self, asleep: tuple[int, ...]) -> list[float]:
        """Return the watts without jobs of the cluster and of every rack with a cap."""
        base = base_w(self.cluster, asleep)
        return [float(base.sum()), *(float(base[mask].sum()) for _, _, mask in self._racks)]

    def _nodes(
        self, plan: Plan, changed: list[str], gone: list[str], asleep: tuple[int, ...]
    ) -> list[Violation]:
        """Return the nodes that have too few GPUs, or sleep, under the plan."""
        taken = self._taken(self._entries(plan, changed, gone))
        used = {k: self._used[k] + more for k, more in taken.items() if 0 <= k < len(self._gpus)}
        found = [
            over_capacity(node, used[node], self._gpus[node])
            for node in sorted(used)
            if used[node] > self._gpus[node]
        ]
        if asleep != self._asleep:
            everywhere = self._used.copy()
            for node, count in used.items():
                everywhere[node] = count
            return found + asleep_violations(asleep, len(self._gpus), everywhere)
        if asleep:
            sleeping = used.keys() & set(asleep)
            found += [asleep_in_use(n, used[n]) for n in asleep if n in sleeping and used[n]]
        return found

    def _power(
        self, round: Round, plan: Plan, changed: list[str], gone: list[str]
    ) -> list[Violation]:
        """Return the caps and budgets that the plan's power breaks."""
        if not self._racks and round.power_cap_w is None and round.energy_j is None:
            return []
        asleep = asleep_after(round, plan)
        base = self._base_w if asleep == self._asleep else self._base(asleep)
        entries = self._entries(plan, changed, gone)
        watts = [
            base[k]
            + self._extra_w[k]
            + sum(sign * extra_w(allocation, self._idle_w, mask) for allocation, sign in entries)
            for k, mask in enumerate(self._masks)
        ]
        wake = waking_w(round, round.asleep, asleep)
        ends = ending(round, plan, self._idle_w)
        found = cluster_violations(round, watts[0], wake, ends)
        wake += waking_w(round, round.waking, asleep)
        for (rack, cap_w, mask), power_w in zip(self._racks, watts[1:], strict=True):
            found += rack_violations(rack, cap_w, power_w + float(wake[mask].sum()))
        return found and avoidable(round, plan)

    def _entries(
        self, plan: Plan, changed: list[str], gone: list[str]
    ) -> list[tuple[Allocation, int]]:
        """Return what the plan takes off the books (-1) and adds (1)."""
        off = [(self._held[i], -1) for i in chain(changed, gone) if i in self._held]
        return off + [(plan.allocations[i], 1) for i in changed]


def _shares(held: Allocation) -> bool:
    return held.array is not None or held.option.width > 1


def _states(round: Round, wanted: Collection[str]) -> dict[str, JobState]:
    """Return the states of some jobs; the search ends when all are found."""
    found: dict[str, JobState] = {}
    if not wanted:
        return found
    for state in chain(round.waiting, round.running):
        if state.job.id in wanted:
            found[state.job.id] = state
            if len(found) == len(wanted):
                break
    return found
