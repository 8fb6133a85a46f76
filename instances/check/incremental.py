"""The incremental check of successive plans, which examines only what has changed."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, compress, filterfalse
from math import inf
from operator import attrgetter, is_not, or_
from sys import float_info
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from ronda.instances.check.sharing import one_gpu, place_of, plan_violations
from ronda.instances.check.site.min_run import may_change
from ronda.instances.check.site.rules import site_violations
from ronda.instances.cluster import Cluster
from ronda.instances.errors import RondaError
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING, Violation

AUDITED_AFTER = 1024
"""The number of accepted plans after which the books are rebuilt from all allocations."""

NO_JOB = (inf, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, inf, inf)
"""The row in `ExpectedEnds` of a place without a job."""

JOB_ID = attrgetter("job.id")


class Examined(NamedTuple):
    """An allocation of a job in a round: its violations, its watts, and its expected end.

    The watts are those on top of its idle GPUs, for the cluster and for each rack with a cap.
    """

    allocation: Allocation
    violations: list[Violation]
    watts: list[float]
    end: NDArray[np.float64]


class Ledger:
    """An incremental checker, which compares each plan of a run with the last accepted plan.

    It finds the violations that `ronda.instances.check.checker.check` finds, but does not examine
    an allocation object again after accepting it. Its books are right under three conditions: every
    applied plan is accepted, accepted plans have no violation (except "must-run", when a driver has
    to shed load), and completed jobs are released. A plan is checked from scratch if the number of
    running jobs differs from the books, or if the cluster object has changed.

    The time of a check is proportional to the number of changes. After every `AUDITED_AFTER`
    accepted plans the books are compared with the sums over all allocations. `accept` raises
    RondaError if they differ by more than rounding.
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
        self._held_w: dict[str, list[float]] = {}
        self._used = [0] * len(self._gpus)
        self._members: Counter[object] = Counter()  # of each array
        self._extra_w = [0.0] * len(self._masks)
        self._asleep: tuple[int, ...] = ()
        self._base_w = self._base(())
        self._expected = ExpectedEnds(self._idle_w)
        self._seen: Round | None = None  # the last round; None if the books have changed since
        self._live: dict[str, JobState] = {}  # its jobs
        self._accepted, self._entered_w = 0, 0.0  # since the books were compared
        self._examiner: Examiner | None = None
        self._examined: dict[tuple[str, int], Examined] = {}  # in the round seen last

    def check(self, round: Round, plan: Plan) -> list[Violation]:
        """Return every violation by a plan.

        The running jobs of the round must be those of the accepted plan, except released jobs.
        """
        if round.cluster is not self.cluster or len(round.running) != len(self._held):
            return check_plan(round, plan)
        examiner = self._examiner
        if examiner is None or examiner.profiles is not round.profiles:
            examiner = self._examiner = Examiner(self.cluster, round.profiles)
        if round is not self._seen:
            self._seen, states_now = round, round.jobs
            self._live = dict(zip(map(JOB_ID, states_now), states_now, strict=True))
            self._examined.clear()
            if round.energy_j is not None:
                self._expected.see(self._live, self._held)
        changed, gone = self._difference(plan)
        live = self._live
        states = {i: live[i] for i in (*changed, *gone, *plan.discarded) if i in live}
        found = []
        examined = []
        for job_id in changed:
            allocation, state = plan.allocations[job_id], states.get(job_id)
            known = self._examined.get((job_id, id(allocation)))
            if known is None:  # else another plan for this round has had it
                known = Examined(
                    allocation,
                    allocation_violations(examiner, job_id, state, allocation),
                    self._watts(allocation),
                    ending(round, [state] if state else [], plan, self._idle_w),
                )
                self._examined[job_id, id(allocation)] = known
            examined.append(known)
            found += known.violations
        found += must_run_violations(states.values(), plan)
        found += discard_violations(states, plan)
        if self._members or any(_shares(plan.allocations[i]) for i in changed):
            jobs = {job_id: state.job for job_id, state in live.items()}
            found += plan_violations(plan.allocations, jobs)
        found += self._nodes(plan, changed, gone, asleep_after(round, plan))
        found += site_violations(round, plan)
        return found + self._power(round, plan, [*changed, *gone], examined)

    def accept(self, plan: Plan) -> None:
        """Enter an applied plan into the books."""
        self._accepted += 1
        if self._accepted >= AUDITED_AFTER and self._seen is not None:
            self._audit(ends=self._seen.energy_j is not None)
        changed, gone = self._difference(plan)
        for job_id in (*changed, *gone):
            if job_id in self._held:
                self.release(job_id)
        for job_id in changed:
            allocation = self._held[job_id] = plan.allocations[job_id]
            watts = self._held_w[job_id] = self._watts(allocation)
            self._enter(allocation, 1, watts)
        if plan.asleep is not None and plan.asleep != self._asleep:
            self._asleep, self._base_w = plan.asleep, self._base(plan.asleep)

    def release(self, job_id: str) -> None:
        """Remove a completed job of the accepted plan from the books."""
        self._enter(self._held.pop(job_id), -1, self._held_w.pop(job_id))

    def _audit(self, *, ends: bool) -> None:
        """Rebuild the books from all allocations, compare them with the old ones, and keep them."""
        anew = Ledger(self.cluster)
        anew.accept(Plan(allocations=self._held))
        apart_w = max(abs(a - b) for a, b in zip(self._extra_w, anew._extra_w, strict=True))
        differs = {
            "GPUs in use": self._used != anew._used,
            "arrays": self._members != anew._members,
            "watts": apart_w > ROUNDING * (self._entered_w + anew._entered_w),
            "expected ends": ends and not self._expected.is_right(self._live, self._held),
        }
        if wrong := [name for name, yes in differs.items() if yes]:
            raise RondaError(f"a defect: the checker's books are wrong on {', '.join(wrong)}")
        self._extra_w, self._entered_w, self._accepted = anew._extra_w, 0.0, 0

    def _difference(self, plan: Plan) -> tuple[list[str], list[str]]:
        held, given = self._held, plan.allocations
        changed = list(compress(given, map(is_not, given.values(), map(held.get, given))))
        return changed, [*filterfalse(given.__contains__, held)]

    def _watts(self, allocation: Allocation) -> list[float]:
        return [extra_w(allocation, self._idle_w, mask) for mask in self._masks]

    def _enter(self, allocation: Allocation, sign: int, watts: Sequence[float]) -> None:
        """Add an allocation to the sums, or subtract it."""
        for node, change in self._taken([(allocation, sign)]).items():
            self._used[node] += change
        if one_gpu(allocation):
            place = place_of(allocation)
            self._members[place] += sign
            if not self._members[place]:
                del self._members[place]
        self._seen = None
        for k, own_w in enumerate(watts):
            self._extra_w[k] += sign * own_w
            self._entered_w += abs(own_w)

    def _taken(self, entries: Iterable[tuple[Allocation, int]]) -> dict[int, int]:
        """Return the change of GPUs in use per node; an array, or a GPU in parts, counts once."""
        taken: dict[int, int] = {}
        members: dict[object, int] = {}
        for allocation, sign in entries:
            if one_gpu(allocation):
                place = place_of(allocation)
                before = members.get(place, self._members[place])
                members[place] = before + sign
                sign = (before + sign > 0) - (before > 0)
            for node, count in allocation.placement:
                taken[node] = taken.get(node, 0) + sign * count
        return taken

    def _base(self, asleep: tuple[int, ...]) -> list[float]:
        """Return the idle watts of the cluster and of every rack with a cap."""
        base = base_w(self.cluster, asleep)
        return [float(base.sum()), *(float(base[mask].sum()) for _, _, mask in self._racks)]

    def _nodes(
        self, plan: Plan, changed: list[str], gone: list[str], asleep: tuple[int, ...]
    ) -> list[Violation]:
        """Return the violations by nodes that have too few GPUs or are asleep under the plan."""
        off = [(self._held[i], -1) for i in chain(changed, gone) if i in self._held]
        taken = self._taken(off + [(plan.allocations[i], 1) for i in changed])
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
        self, round: Round, plan: Plan, other: Sequence[str], examined: Sequence[Examined]
    ) -> list[Violation]:
        """Return the violations of caps and budgets by the plan's power.

        The plan changes the allocations of the `other` jobs. Those of them with an allocation in
        the plan are in `examined`.
        """
        if not self._racks and round.power_cap_w is None and round.energy_j is None:
            return []
        asleep = asleep_after(round, plan)
        base = self._base_w if asleep == self._asleep else self._base(asleep)
        off_w = [self._held_w[job_id] for job_id in other if job_id in self._held_w]
        watts = [
            base[k] + (extra - sum(w[k] for w in off_w)) + sum(new.watts[k] for new in examined)
            for k, extra in enumerate(self._extra_w)
        ]
        wake = waking_w(round, round.asleep, asleep)
        ends = np.concatenate([self._expected.ends(round, other), *(new.end for new in examined)])
        found = cluster_violations(round, watts[0], wake, ends)
        wake += waking_w(round, round.waking, asleep)
        for (rack, cap_w, mask), power_w in zip(self._racks, watts[1:], strict=True):
            found += rack_violations(rack, cap_w, power_w + float(wake[mask].sum()))
        if found and not all(may_change(round, state) for state in round.running):
            return avoidable(round, plan)
        return found


def _shares(held: Allocation) -> bool:
    return held.array is not None or held.option.width > 1


class ExpectedEnds:
    """The expected ends of the jobs on a ledger's books, and their power until the end.

    Each job has a row. In each round a job is read again only if its state or allocation is a new
    object.
    """

    def __init__(self, idle_w: Sequence[float]) -> None:
        self._idle_w, self._everywhere = idle_w, [True] * len(idle_w)
        self._states: Mapping[str, JobState] = {}  # what was read, and with what on the books
        self._held: dict[str, Allocation] = {}
        self._place: dict[str, int] = {}  # of a job's row
        self._rows = np.array([NO_JOB])
        self._empty = [0]  # places without a job

    def see(self, live: Mapping[str, JobState], held: Mapping[str, Allocation]) -> None:
        """Record the live jobs and the allocations on the books."""
        for job_id in self._place.keys() - held.keys():
            self._empty.append(self._place.pop(job_id))
            self._rows[self._empty[-1]] = NO_JOB
        other_state = map(is_not, map(live.get, held), map(self._states.get, held))
        other_place = map(is_not, held.values(), map(self._held.get, held))
        for job_id in compress(held, map(or_, other_state, other_place)):
            if not self._empty:
                self._empty += range(len(self._rows), 2 * len(self._rows))
                self._rows = np.vstack([self._rows, np.full_like(self._rows, NO_JOB)])
            if job_id not in self._place:
                self._place[job_id] = self._empty.pop()
            self._rows[self._place[job_id]] = self._row(live.get(job_id), held[job_id])
        self._states, self._held = live, dict(held)

    def _row(self, state: JobState | None, given: Allocation) -> tuple[float, ...]:
        if state is None or not given.option.rate > 0:
            return NO_JOB
        rate = 0.0 if state.allocation is None else state.allocation.option.rate
        watts = extra_w(given, self._idle_w, self._everywhere)
        option, estimate, job = given.option, state.job.estimate, state.job
        work = inf if estimate is None else estimate.work
        may_s = inf if job.limit_s is None else job.limit_s - state.ran_s
        held_s = inf if state.allocation is None else state.held_s
        known = work, state.done, state.since_s, rate, option.rate, option.teardown_s, watts
        return *known, may_s, held_s

    def ends(self, round: Round, other: Collection[str]) -> NDArray[np.float64]:
        """Return the result of `ending` for all jobs on the books except `other`."""
        if round.energy_j is None:
            return np.zeros((0, 2))
        work, done, since_s, rate, given_rate, teardown_s, watts, may_s, held_s = self._rows.T
        left = work - (done + rate * np.maximum(0.0, round.now_s - since_s))
        outlived = np.maximum(0.01 * work, float_info.min)
        seconds = np.where(left > 0, left, outlived) / given_rate + teardown_s
        if round.site.kills_at_limit:
            left_s = may_s - np.maximum(0.0, round.now_s - held_s)
            seconds = np.minimum(seconds, np.maximum(0.0, left_s))
        seconds[[self._place[i] for i in other if i in self._place]] = inf
        inside = seconds < round.window_s
        return np.stack([seconds[inside], watts[inside]], axis=1)

    def is_right(self, live: Mapping[str, JobState], held: Mapping[str, Allocation]) -> bool:
        """Return whether the rows equal those that a fresh reading of all jobs would give."""
        rows = {i: self._row(live.get(i), given) for i, given in held.items()}
        return rows.keys() == self._place.keys() and all(
            tuple(self._rows[self._place[job_id]].tolist()) == row for job_id, row in rows.items()
        )
