"""The cluster as the driver sees it: who holds what, which nodes sleep, what it draws."""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ronda.formulations.fusion.sharing import narrowed
from ronda.formulations.models.power import job_power_w
from ronda.instances.check.answer import Ledger
from ronda.instances.errors import InputError, RondaError
from ronda.instances.faults import Straggler
from ronda.instances.instance import DECLARED, LEARNT, Instance, Knowledge
from ronda.instances.job import Allocation, Job, JobState, used_nodes
from ronda.instances.learning import SweepState
from ronda.instances.learnt import Predictor
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Failure, JobOutcome, Segment
from ronda.instances.violation import SECOND
from ronda.solvers.horizon.energy import Meter, Tally
from ronda.solvers.horizon.faults import Event, FaultState
from ronda.solvers.horizon.journal import Change, change_of
from ronda.solvers.horizon.live import LiveJob, TrueRates
from ronda.solvers.horizon.pacing import Pacer

if TYPE_CHECKING:
    from ronda.solvers.horizon.beliefs import Beliefs


class ClusterState:
    """Everything that changes while a validated instance is driven."""

    def __init__(
        self,
        instance: Instance,
        knowledge: Knowledge = DECLARED,
        predictor: Predictor | None = None,
    ) -> None:
        self.instance, self.knowledge = instance, knowledge
        self.beliefs = _beliefs(knowledge, predictor)
        self.topology = instance.cluster.topology
        self.now_s = 0.0
        self.waiting: dict[str, JobState] = {}
        self.running: dict[str, JobState] = {}
        self.lives: dict[str, LiveJob] = {}
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
        self._ends: list[
            tuple[float, int, int, int, LiveJob]
        ] = []  # end, index, restarts, entry, job
        self._entries = count()
        self.power_w = self.meter.awake_w  # once every pause is over
        self.pinned: dict[str, None] = {}  # jobs that may not be stopped until they progress
        self._racks_are_capped = any(rack.power_cap_w for rack in instance.cluster.racks)
        self._observed: dict[str, None] = {}  # in the order in which what they measure is learnt
        self._out_of_order = False
        self._left: set[str] = set()  # arrays that have lost members
        self.world = FaultState(instance.faults)
        self.failures: list[Failure] = []
        self.sweeps: dict[str, SweepState] = {}
        self._trials = Counter(job.sweep for job in instance.jobs)  # that have not ended, by sweep
        self.cluster = instance.cluster  # with the GPUs that are out of service now

    def next_submit_s(self) -> float:
        """Return when the next job arrives."""
        jobs = self.instance.jobs
        return jobs[self.submitted].submit_s if self.submitted < len(jobs) else float("inf")

    def next_end_s(self) -> float:
        """Return when the next running job completes if nothing changes."""
        while self._ends:
            end_s, _, version, _, live = self._ends[0]
            if live.end_s == end_s and live.state.restarts == version:
                return end_s
            heapq.heappop(self._ends)
        return float("inf")

    def next_report_s(self) -> float:
        """Return when a running trial of a sweep reports its loss next."""
        observed = (self.lives[job_id] for job_id in self._observed)
        times = (live.next_stage_s for live in observed if live.job.sweep is not None)
        return min(times, default=float("inf"))

    def advance(self, now_s: float) -> tuple[int, int, int]:
        """Move the time on: jobs end, things break and are repaired, then jobs are submitted.

        Returns how many jobs completed and were submitted, and how often something broke or came
        back that changes what can run.
        """
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
            self._end(heapq.heappop(self._ends)[4])
            completed += 1
        broke = sum(self._happen(event) for event in self.world.until(now_s))
        self._reslice()
        self._settle()
        submitted = 0
        while self.next_submit_s() <= now_s:
            job = self.instance.jobs[self.submitted]
            live = LiveJob.submit(self.submitted, job, self.instance, self.knowledge)
            self.lives[live.job.id] = live
            self.waiting[live.job.id] = live.state
            sweep = live.job.sweep
            if sweep is not None and sweep not in self.sweeps:
                self.sweeps[sweep] = SweepState(sweep=self.instance.sweeps[sweep])
            self.submitted += 1
            submitted += 1
        if self._out_of_order:
            self._sort()
        return completed, submitted, broke

    def _end(self, live: LiveJob) -> None:
        """End a job that is complete, or has failed for good; one that may try again waits."""
        retries, end_s = self.instance.faults.retries, live.end_s
        if live.fails:
            dead = retries is not None and live.failed >= retries
            self._fail(live, end_s, None)
            if not dead:
                return
            del self.waiting[live.job.id]
        else:
            self._close(live, live.release(end_s, complete=True))
            self.ledger.release(live.job.id)
            del self.running[live.job.id]
        self._leave(live, live.outcome(end_s, failed=live.fails))

    def discard(self, job_ids: Iterable[str]) -> None:
        """End waiting trials of sweeps that the policy gives up."""
        for job_id in job_ids:
            del self.waiting[job_id]
            live = self.lives[job_id]
            self._leave(live, live.outcome(self.now_s, discarded=True))

    def _leave(self, live: LiveJob, outcome: JobOutcome) -> None:
        """Note a job that has ended in some way; what its trial of a sweep logged is kept."""
        del self.lives[live.job.id]
        if self.beliefs is not None:
            ended = outcome.failed or outcome.discarded
            self.beliefs.end(live.job, None if ended else live.work)
        self.outcomes[live.index] = outcome
        self.completed += 1
        sweep, log = live.job.sweep, live.log()
        if sweep is None:
            return
        self._trials[sweep] -= 1
        if not self._trials[sweep]:
            del self.sweeps[sweep]
        elif log is not None:
            known = self.sweeps[sweep]
            self.sweeps[sweep] = replace(known, ended=known.ended | {live.job.id: log})

    def _fail(self, live: LiveJob, now_s: float, node: int | None) -> None:
        """Stop a job by a failure, of a node or (None) its own; it waits with what is saved."""
        segment, failure = live.fail(now_s, node, live.job.costs or self.instance.costs)
        self._close(live, segment)
        self.failures.append(failure)
        self._wait(live)
        self.ledger.release(live.job.id)

    def _reslice(self) -> None:
        """Let arrays that have lost members go on without them, at once and at no cost."""
        if not self._left:
            return
        held = {i: a for i, a in self.held().items() if a.array in self._left}
        jobs = {i: self.lives[i].job for i in held}
        narrow = narrowed(held, jobs, self.instance.profiles, self.instance.cluster)
        for job_id, allocation in narrow.items():
            self._narrow(job_id, allocation)
        self._left.clear()
        self.ledger.accept(Plan(allocations=self.held()))

    def _narrow(self, job_id: str, allocation: Allocation) -> None:
        """Let a job go on in a narrower array."""
        live = self.lives[job_id]
        observed, pinned = job_id in self._observed, job_id in self.pinned
        speed = self.world.speed_of(allocation)
        self._close(live, live.narrow(self.now_s, allocation, self.rates, speed))
        self.power_w += self.meter.extra_w(allocation.option, live.truth.power)
        self.running[job_id] = live.state
        if observed:
            self._observed[job_id] = None
        if pinned:
            self.pinned[job_id] = None
        self._expect(live)

    def _happen(self, event: Event) -> bool:
        """Carry out what happens to a node; tell whether it changes what can run."""
        node, fault, world = event.node, event.fault, self.world
        if isinstance(fault, Straggler):
            world.speed[node] = fault.speed
            if event.kind == "at speed":
                del world.speed[node]
            for live in self._on(node):
                held = live.state.allocation
                assert held is not None
                live.change_speed(event.time_s, self.rates, world.speed_of(held))
                self._expect(live)
            return False
        if event.kind == "drains":
            world.draining.add(node)
            return False
        if event.kind == "repaired":
            world.draining.discard(node)
            self._come_back(node)
            return True
        for live in self._on(node):
            if fault.notice_s is None:
                self._fail(live, event.time_s, node)
            else:
                self._stop(live.job.id)
                self.ledger.release(live.job.id)
        if node not in world.off:
            self._go_off(node)
        return True

    def _on(self, node: int) -> list[LiveJob]:
        """Return the jobs that hold GPUs of a node."""
        held = self.held().items()
        return [self.lives[i] for i, a in held if any(n == node for n, _ in a.placement)]

    def _go_off(self, node: int) -> None:
        """Let a node without jobs draw nothing."""
        if node in self.asleep:
            self._end_sleep(node)
        if node in self.waking:
            self._end_waking(node)
        self.ready_s[node] = self.now_s
        self.world.off[node] = self.now_s
        self.power_w -= self.meter.idle_w(node)

    def _come_back(self, node: int) -> None:
        """Let a node that was off draw power, and run jobs, again."""
        self.meter.off(node, self.world.off.pop(node), self.now_s)
        self.power_w += self.meter.idle_w(node)

    def _settle(self) -> None:
        """Switch drained nodes off that no job holds any more; show which GPUs can be used."""
        world = self.world
        if not world.draining and not world.off and not self.cluster.out:
            return
        used = used_nodes(self.held().values())
        for node in sorted(world.draining - world.off.keys() - used):
            self._go_off(node)
        out = world.out(self.topology.node_gpus.tolist(), self.held())
        if out == self.cluster.out:
            return
        whole = self.instance.cluster
        self.cluster = msgspec.structs.replace(whole, out=out) if out else whole
        self.ledger = Ledger(self.cluster)
        self.ledger.accept(Plan(allocations=self.held(), asleep=tuple(sorted(self.asleep))))

    def snapshot(self, length_s: float, ahead_s: float = 0.0) -> Round:
        """Return the round to decide now, with the limits of some time ahead."""
        if not self.world.silent(self.now_s):
            self._measure()
        for job_id in [*self.pinned]:
            if self.lives[job_id].unpin(self.now_s):
                del self.pinned[job_id]
                self.running[job_id] = self.lives[job_id].state
        instance, budget = self.instance, self.instance.budget
        cap = budget.power_cap_w
        then_s = self.now_s + ahead_s
        cap_w = None if cap is None else cap.at(then_s)
        waking_w = sum(self.meter.wake_w[node] for node in self.waking)
        energy_j = sustained_w = banked_j = None
        if self.pacer is not None:
            bound_j = self._bound_j() + self.power_w * ahead_s
            spending = self.pacer.spending(then_s, bound_j, self._live())
            energy_j, sustained_w, banked_j = spending
        seen = Round(
            name=instance.name,
            now_s=self.now_s,
            length_s=length_s,
            cluster=self.cluster,
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
            sweeps=dict(self.sweeps),
            energy_price_per_j=None if self.cost is None else self.cost.series.at(self.now_s),
            carbon_g_per_j=None if self.carbon is None else self.carbon.series.at(self.now_s),
        )
        return seen if self.beliefs is None else self.beliefs.believe(seen)

    def _measure(self) -> None:
        """Measure what has changed of the running jobs, and show what was measured long enough ago.

        Reports are late by the same time each; nothing new is measured while one is on its way.
        """
        late_s = self.world.faults.report_s
        for job_id in self._observed:
            live = self.lives[job_id]
            if live.report is None and live.next_stage_s <= self.now_s:
                live.observe(self.now_s)
            if live.report is not None and live.report[0] + late_s <= self.now_s:
                before = live.state
                live.show()
                self.running[job_id] = live.state
                if self.beliefs is not None:
                    self._learn(live, before, self.beliefs)

    def _learn(self, live: LiveJob, before: JobState, beliefs: "Beliefs") -> None:
        """Let what a job has measured be learnt from."""
        held = live.state.allocation
        assert held is not None
        gpu_type = self.topology.pools[held.option.pool].gpu_type
        if before.since_s == live.resume_s:  # the first time on this allocation
            beliefs.judge(gpu_type, before, held.option.rate)
        factor = live.truth.throughput * self.world.speed_of(held)
        step = self.rates.step(live.job, held, factor)
        if step is not None:
            beliefs.measure((live.job.profile, gpu_type.name), *step)
        if not live.segments:
            beliefs.begin(live.job, live.state.noise)

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
        late = [spent_s] if spent_s > self.now_s + self.instant_s else []
        return [*(change for change in changes if change is not None), *late]

    def must_rest(self) -> bool:
        """Tell whether a limit is, or begins to be, broken now if nodes without jobs stay awake."""
        if self.spent_s() <= self.now_s + self.instant_s:
            return True
        if self.instance.budget.power_cap_w is None and not self._racks_are_capped:
            return False
        return bool(self.ledger.check(replace(self.snapshot(1.0), energy_j=None), Plan()))

    @property
    def instant_s(self) -> float:
        """Seconds from now that count as now."""
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
            running.append((self.meter.extra_w(held.option, live.truth.power), live.resume_s))
        waking = [(node, *times) for node, times in self.waking.items()]
        off = self.world.off.items()
        return self.meter.used_j(time_s, running, self.asleep.items(), waking, off)

    def held(self) -> dict[str, Allocation]:
        """Return what every running job holds."""
        return {i: s.allocation for i, s in self.running.items() if s.allocation is not None}

    def still(self, plan: Plan) -> Plan:
        """Return a plan for an earlier round without what can no longer be done.

        Jobs that have ended are left out. One that finds too few GPUs in service where it is to go
        stays where it runs if nobody else has come there, or waits.
        """
        left: list[int] = self.cluster.topology.node_gpus.tolist()

        taken: set[object] = set()

        def take(allocation: Allocation) -> bool:
            array = allocation.array and (allocation.array, allocation.placement)
            if array in taken:
                return True
            if any(left[node] < gpus for node, gpus in allocation.placement):
                return False
            if array is not None:
                taken.add(array)
            for node, gpus in allocation.placement:
                left[node] -= gpus
            return True

        held, kept = self.held(), dict[str, Allocation]()
        wanted = {i: a for i, a in plan.allocations.items() if i in self.lives}
        for job_id, allocation in wanted.items():
            now = held.get(job_id)
            if now is not None and now.goes_on(allocation) and take(now):
                kept[job_id] = now
        for job_id, allocation in wanted.items():
            if job_id not in kept:
                for choice in (allocation, held.get(job_id)):
                    if choice is not None and take(choice):
                        kept[job_id] = choice
                        break
        jobs = {i: self.lives[i].job for i in kept}
        kept |= narrowed(kept, jobs, self.instance.profiles, self.instance.cluster)
        used = used_nodes(kept.values())
        asleep = plan.asleep
        if asleep is not None:
            asleep = tuple(n for n in asleep if n not in self.world.off and n not in used)
        gone = tuple(i for i in plan.discarded if i in self.lives)
        return msgspec.structs.replace(plan, allocations=kept, asleep=asleep, discarded=gone)

    def difference(self, plan: Plan) -> Change:
        """Return what a plan changes."""
        return change_of(self.held(), plan, self.asleep)

    def apply(self, change: Change) -> tuple[int, int, int]:
        """Carry out a change; returns how many jobs started, stopped and changed."""
        for job_id in change.stopped:
            self._stop(job_id)
        now, narrow, held = self.held(), dict[str, Allocation](), dict[str, Allocation]()
        for job_id, allocation in change.held.items():
            narrows = job_id in now and now[job_id].narrows_to(allocation)
            (narrow if narrows else held)[job_id] = allocation
        moved = [job_id for job_id in held if job_id in now]
        for job_id, allocation in narrow.items():
            self._narrow(job_id, allocation)
        for job_id in moved:
            live = self.lives[job_id]
            self._close(live, live.release(self.now_s, complete=False))
        if change.asleep or self.asleep:
            self._set_asleep(set(change.asleep))
        together_s = self._together_s(held)
        for job_id, allocation in held.items():
            self._hold(job_id, allocation, together_s.get(allocation.array, 0.0))
        self._left.clear()
        if self._out_of_order:
            self._sort()
        self._settle()
        return len(held) - len(moved), len(change.stopped), len(moved)

    def _stop(self, job_id: str) -> None:
        """Stop a job in good order: it waits, and has lost nothing."""
        live = self.lives[job_id]
        self._close(live, live.release(self.now_s, complete=False))
        self._wait(live)

    def _wait(self, live: LiveJob) -> None:
        del self.running[live.job.id]
        self.waiting[live.job.id] = live.state
        self._out_of_order = True

    def _together_s(self, held: Mapping[str, Allocation]) -> dict[str | None, float]:
        """Return when all jobs of each array that begins are ready; no one goes on before."""
        found: dict[str | None, float] = {}
        for job_id, allocation in held.items():
            if allocation.array is not None:
                live = self.lives[job_id]
                costs = live.job.costs or self.instance.costs
                own_s = self._ready_s(allocation) + live.pause_s(self.now_s, allocation, costs)
                found[allocation.array] = max(own_s, found.get(allocation.array, 0.0))
        return found

    def _ready_s(self, allocation: Allocation) -> float:
        """Return when all nodes of an allocation are awake, now at the earliest."""
        return max(self.now_s, *(self.ready_s[node] for node, _ in allocation.placement))

    def _hold(self, job_id: str, allocation: Allocation, together_s: float) -> None:
        live = self.lives[job_id]
        if self.beliefs is not None:
            allocation = self._as_drawn(live.job, allocation)
        ready_s = self._ready_s(allocation)
        costs = live.job.costs or self.instance.costs
        speed = self.world.speed_of(allocation)
        live.hold(self.now_s, allocation, self.rates, ready_s, costs, speed, together_s)
        if live.pinned:
            self.pinned[job_id] = None
        if self.waiting.pop(job_id, None) is not None and self.running:
            last = next(reversed(self.running))
            self._out_of_order |= self.lives[last].index > live.index
        self.running[job_id] = live.state
        self.power_w += self.meter.extra_w(allocation.option, live.truth.power)
        self._expect(live)
        uneven = live.truth.throughput != 1.0 or self.world.faults.stragglers or live.watched
        if live.curve is not None or live.learning is not None or uneven:
            self._observed[job_id] = None

    def _as_drawn(self, job: Job, allocation: Allocation) -> Allocation:
        """Return an allocation with the watts of its profile, whatever the plan believed."""
        option = allocation.option
        pool = self.topology.pools[option.pool]
        nodes = -(-option.gpus // pool.gpus_per_node)
        way = option.gpus, nodes, option.batch, option.clock
        power_w = job_power_w(self.instance.profiles[job.profile], pool.gpu_type, *way)
        option = msgspec.structs.replace(option, power_w=power_w / option.width)
        return msgspec.structs.replace(allocation, option=option)

    def _expect(self, live: LiveJob) -> None:
        """Note when a running job ends if nothing changes."""
        entry = live.end_s, live.index, live.state.restarts, next(self._entries), live
        heapq.heappush(self._ends, entry)

    def _close(self, live: LiveJob, segment: Segment) -> None:
        """Enter a job's finished segment on the meter."""
        if segment.array is not None:
            self._left.add(segment.array)
        self.pinned.pop(live.job.id, None)
        self.meter.segment(segment, live.truth.power)
        self.power_w -= self.meter.extra_w(segment.option, live.truth.power)
        self._observed.pop(live.job.id, None)

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
        """End sleeps, wake-ups and times off that are open and return every job's history."""
        for node in sorted(self.world.off):
            self._come_back(node)
        for node in sorted(self.asleep):
            self._end_sleep(node)
        for node in sorted(self.waking):
            self._end_waking(node)
        missing = [i for i, outcome in enumerate(self.outcomes) if outcome is None]
        if missing:
            raise RondaError(f"{len(missing)} jobs never completed: a defect in the driver")
        return tuple(outcome for outcome in self.outcomes if outcome is not None)


def _beliefs(knowledge: Knowledge, predictor: Predictor | None) -> "Beliefs | None":
    """Return what learns from jobs that run, if policies know them in no other way."""
    if predictor is not None and knowledge != "history":
        raise InputError("predictor", f"the knowledge {knowledge!r}", "history, which it tells")
    if knowledge not in LEARNT:
        return None
    from ronda.solvers.horizon.beliefs import Beliefs  # needs SciPy

    return Beliefs(history=knowledge == "history", predictor=predictor)
