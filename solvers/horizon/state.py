"""The cluster as the driver sees it: who holds what, which nodes sleep, what it draws."""

import heapq

from msgspec.structs import replace

from ronda.instances.check.answer import Ledger
from ronda.instances.errors import RondaError
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import JobOutcome
from ronda.instances.violation import SECOND
from ronda.solvers.horizon.energy import Meter, Tally
from ronda.solvers.horizon.journal import Change
from ronda.solvers.horizon.live import Live, TrueRates
from ronda.solvers.horizon.pacing import Pacer


class ClusterState:
    """Everything that changes while a validated instance is driven."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.topology = instance.cluster.topology
        self.now_s = 0.0
        self.waiting: dict[str, JobState] = {}
        self.running: dict[str, JobState] = {}
        self.lives: dict[str, Live] = {}
        self.outcomes: list[JobOutcome | None] = [None] * len(instance.jobs)
        self.completed = 0
        self.submitted = 0
        self.asleep: dict[int, float] = {}
        self.sleeps: list[tuple[int, float, float]] = []
        self.ready_s = [0.0] * len(self.topology.node_gpus)
        self.meter = Meter(self.topology)
        self.ledger = Ledger(instance.cluster)
        self.rates = TrueRates(instance)
        self.waking: dict[int, tuple[float, float]] = {}  # since when, and when it is awake
        budget = instance.budget
        self.pacer = None if budget.energy is None else Pacer(instance)
        price, carbon = budget.energy_price_per_j, budget.carbon_g_per_j
        self.cost = None if price is None else Tally(price)
        self.carbon = None if carbon is None else Tally(carbon)
        self._ends: list[tuple[float, int, int, Live]] = []  # (end, index, restarts, job)
        self.power_w = self.meter.awake_w  # once every pause is over
        self.pinned: dict[str, None] = {}  # jobs that may not be stopped until they progress
        self._racks_are_capped = any(rack.power_cap_w for rack in instance.cluster.racks)
        self._observed: set[str] = set()
        self._out_of_order = False

    def next_submit_s(self) -> float:
        """Return when the next job arrives."""
        jobs = self.instance.jobs
        return jobs[self.submitted].submit_s if self.submitted < len(jobs) else float("inf")

    def next_end_s(self) -> float:
        """Return when the next running job completes if nothing changes."""
        while self._ends:
            end_s, _, version, live = self._ends[0]
            if live.end_s == end_s and live.state.restarts == version:
                return end_s
            heapq.heappop(self._ends)
        return float("inf")

    def advance(self, now_s: float) -> tuple[int, int]:
        """Move the time on: complete jobs, then admit those submitted. Returns how many of each."""
        if self.pacer is not None:
            self.pacer.advance(now_s, self._live())
        for tally in (self.cost, self.carbon):
            if tally is not None:
                for time_s in tally.changes(now_s):
                    tally.advance(time_s, self.used_j(time_s))
        self.now_s = now_s
        for node, (_, ready_s) in list(self.waking.items()):
            if ready_s <= now_s:
                self._end_waking(node)
        completed = 0
        while self.next_end_s() <= now_s:
            self._complete(heapq.heappop(self._ends)[3])
            completed += 1
        submitted = 0
        while self.next_submit_s() <= now_s:
            live = Live.submit(self.submitted, self.instance.jobs[self.submitted], self.instance)
            self.lives[live.job.id] = live
            self.waiting[live.job.id] = live.state
            self.submitted += 1
            submitted += 1
        return completed, submitted

    def _complete(self, live: Live) -> None:
        job_id, end_s = live.job.id, live.end_s
        self._let_go(live, end_s, complete=True)
        self.ledger.release(job_id)
        del self.running[job_id], self.lives[job_id]
        self.outcomes[live.index] = live.outcome(end_s)
        self.completed += 1

    def snapshot(self, length_s: float) -> Round:
        """Return the round to decide now."""
        for job_id in self._observed:
            live = self.lives[job_id]
            if live.next_stage_s <= self.now_s:
                live.observe(self.now_s)
                self.running[job_id] = live.state
        for job_id in [*self.pinned]:
            if self.lives[job_id].unpin(self.now_s):
                del self.pinned[job_id]
                self.running[job_id] = self.lives[job_id].state
        instance, budget = self.instance, self.instance.budget
        cap = budget.power_cap_w
        cap_w = None if cap is None else cap.at(self.now_s)
        waking_w = sum(self.meter.wake_w[node] for node in self.waking)
        energy_j = sustained_w = banked_j = None
        if self.pacer is not None:
            spending = self.pacer.spending(self.now_s, self._bound_j(), self._live())
            energy_j, sustained_w, banked_j = spending
        return Round(
            name=instance.name,
            now_s=self.now_s,
            length_s=length_s,
            cluster=instance.cluster,
            profiles=instance.profiles,
            waiting=tuple(self.waiting.values()),
            running=tuple(self.running.values()),
            costs=instance.costs,
            power_cap_w=None if cap_w is None else max(0.0, cap_w - waking_w),
            energy_j=energy_j,
            window_s=3600.0 if self.pacer is None else self.pacer.energy.window_s,
            banked_j=banked_j,
            sustained_w=sustained_w,
            asleep=tuple(sorted(self.asleep)),
            waking=tuple(sorted(self.waking)),
            energy_price_per_j=None if self.cost is None else self.cost.series.at(self.now_s),
            carbon_g_per_j=None if self.carbon is None else self.carbon.series.at(self.now_s),
        )

    def _bound_j(self) -> float:
        """Return the energy that is used by now, or bound to be by nodes that still wake."""
        owed_j = sum(
            self.meter.wake_w[node] * (ready_s - self.now_s)
            for node, (_, ready_s) in self.waking.items()
        )
        return self.used_j(self.now_s) + owed_j

    def spent_s(self) -> float:
        """Return when what runs now would use up the energy budget, if nothing ended before."""
        if self.pacer is None:
            return float("inf")
        return self.pacer.lasts_until_s(self.now_s, self._bound_j(), self.power_w)

    def limit_events(self) -> list[float]:
        """Return when idle nodes may begin to break a limit: it changes, or the budget is spent."""
        if self.next_submit_s() == float("inf"):
            return []
        changes = (series.next_change(self.now_s) for series in self.instance.budget.series)
        spent_s = self.spent_s()
        late = [spent_s] if spent_s > self.now_s + self._instant_s else []
        return [*(change for change in changes if change is not None), *late]

    def must_rest(self) -> bool:
        """Tell whether a limit is, or begins to be, broken now if nodes without jobs stay awake."""
        if self.spent_s() <= self.now_s + self._instant_s:
            return True
        if self.instance.budget.power_cap_w is None and not self._racks_are_capped:
            return False
        return bool(self.ledger.check(replace(self.snapshot(1.0), energy_j=None), Plan()))

    @property
    def _instant_s(self) -> float:
        return SECOND * max(1.0, self.now_s)

    def _live(self) -> float:
        """Return the summed weights of the live jobs."""
        return sum(live.job.weight for live in self.lives.values())

    def used_j(self, time_s: float) -> float:
        """Return the energy used by a time from now on up to the next event."""
        running = []
        for job_id in self.running:
            live = self.lives[job_id]
            held = live.state.allocation
            assert held is not None
            running.append((self.meter.extra_w(held.option), live.resume_s))
        waking = [(node, *times) for node, times in self.waking.items()]
        return self.meter.used_j(time_s, running, self.asleep.items(), waking)

    def held(self) -> dict[str, Allocation]:
        """Return what every running job holds."""
        return {i: s.allocation for i, s in self.running.items() if s.allocation is not None}

    def difference(self, plan: Plan) -> Change:
        """Return what a plan changes."""
        now, new = self.held(), plan.allocations
        held = {i: a for i, a in new.items() if i not in now or not now[i].goes_on(a)}
        stopped = tuple(i for i in self.running if i not in plan.allocations)
        asleep = tuple(sorted(self.asleep)) if plan.asleep is None else tuple(sorted(plan.asleep))
        return Change(held=held, stopped=stopped, asleep=asleep)

    def apply(self, change: Change) -> tuple[int, int, int]:
        """Carry out a change; returns how many jobs started, stopped and changed."""
        for job_id in change.stopped:
            self._stop(job_id)
        moved = [job_id for job_id in change.held if job_id in self.running]
        for job_id in moved:
            self._let_go(self.lives[job_id], self.now_s, complete=False)
        if change.asleep or self.asleep:
            self._set_asleep(set(change.asleep))
        for job_id, allocation in change.held.items():
            self._hold(job_id, allocation)
        if self._out_of_order:
            self._sort()
        return len(change.held) - len(moved), len(change.stopped), len(moved)

    def _stop(self, job_id: str) -> None:
        live = self.lives[job_id]
        self._let_go(live, self.now_s, complete=False)
        del self.running[job_id]
        self.waiting[job_id] = live.state
        self._out_of_order = True

    def _hold(self, job_id: str, allocation: Allocation) -> None:
        live = self.lives[job_id]
        ready_s = max(self.ready_s[node] for node, _ in allocation.placement)
        costs = live.job.costs or self.instance.costs
        live.hold(self.now_s, allocation, self.rates, ready_s, costs)
        if live.pinned:
            self.pinned[job_id] = None
        if self.waiting.pop(job_id, None) is not None and self.running:
            last = next(reversed(self.running))
            self._out_of_order |= self.lives[last].index > live.index
        self.running[job_id] = live.state
        self.power_w += self.meter.extra_w(allocation.option)
        heapq.heappush(self._ends, (live.end_s, live.index, live.state.restarts, live))
        if live.curve is not None or live.learning is not None:
            self._observed.add(job_id)

    def _let_go(self, live: Live, now_s: float, *, complete: bool) -> None:
        """End a job's segment, in its own record and on the meter."""
        segment = live.release(now_s, complete=complete)
        self.pinned.pop(live.job.id, None)
        self.meter.segment(segment)
        self.power_w -= self.meter.extra_w(segment.option)
        self._observed.discard(live.job.id)

    def _set_asleep(self, target: set[int]) -> None:
        for node in sorted(self.asleep.keys() - target):
            self._end_sleep(node)
            self.ready_s[node] = self.now_s + float(self.topology.wake_s[node])
            if self.ready_s[node] > self.now_s and self.meter.wake_w[node]:
                self.waking[node] = (self.now_s, self.ready_s[node])
        for node in sorted(target - self.asleep.keys()):
            if node in self.waking:
                self._end_waking(node)
            self.asleep[node] = self.now_s
            self.power_w -= self.meter.saved_w(node)

    def _end_sleep(self, node: int) -> None:
        since = self.asleep.pop(node)
        self.power_w += self.meter.saved_w(node)
        if self.now_s > since:
            self.meter.sleep(node, since, self.now_s)
            self.sleeps.append((node, since, self.now_s))

    def _end_waking(self, node: int) -> None:
        since_s, ready_s = self.waking.pop(node)
        self.meter.wake(node, min(ready_s, self.now_s) - since_s)

    def _sort(self) -> None:
        """Bring live jobs back into the order of submission."""
        for jobs in (self.waiting, self.running):
            ordered = sorted(jobs.items(), key=lambda item: self.lives[item[0]].index)
            jobs.clear()
            jobs.update(ordered)
        self._out_of_order = False

    def close(self) -> tuple[JobOutcome, ...]:
        """End the sleeps and wake-ups that are open and return every job's history."""
        for node in sorted(self.asleep):
            self._end_sleep(node)
        for node in sorted(self.waking):
            self._end_waking(node)
        missing = [i for i, outcome in enumerate(self.outcomes) if outcome is None]
        if missing:
            raise RondaError(f"{len(missing)} jobs never completed: a defect in the driver")
        return tuple(outcome for outcome in self.outcomes if outcome is not None)
