"""The driver's view of the cluster: allocations, sleeping nodes, and the draw."""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ronda.formulations.site.min_run import has_minimum, least_run_s
from ronda.formulations.tenants.usage import Past, ended, used_by
from ronda.horizon.faults import Event, FaultState
from ronda.horizon.journal import Change, change_of
from ronda.horizon.live import LiveJob, TrueRates, never_run
from ronda.horizon.nodes import NodeStates
from ronda.horizon.pacing import Spending
from ronda.horizon.queue import Ends, Order, Queue
from ronda.instances.check.checker import Ledger
from ronda.instances.errors import InputError, RondaError
from ronda.instances.instance import DECLARED, LEARNT, Instance, Knowledge, Straggler
from ronda.instances.job import Allocation, Job, JobState, used_nodes
from ronda.instances.learning import SweepState
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.fits import Predictor
from ronda.instances.models.power import job_power_w
from ronda.instances.models.sharing import narrowed, ready_together
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Failure, JobOutcome, Segment
from ronda.instances.violation import SECOND

if TYPE_CHECKING:
    from ronda.horizon.beliefs import Beliefs


class ClusterState:
    """All state that changes while a validated instance is driven."""

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
        self.queue = Queue()
        self.nodes = NodeStates(self.topology)
        self.lives: dict[str, LiveJob] = {}
        self.outcomes: list[JobOutcome | None] = [None] * len(instance.jobs)
        self.completed = 0
        self.order = Order(instance.jobs)
        self.ledger = Ledger(instance.cluster)
        self.rates = TrueRates(instance)
        self.spending = Spending(instance, self.nodes)
        self.ends = Ends()
        self.pinned: dict[str, None] = {}  # jobs that may not be stopped until they progress
        self._racks_are_capped = any(rack.power_cap_w for rack in instance.cluster.racks)
        self._observed: dict[str, None] = {}  # jobs to measure, in the order of learning from them
        self._left: set[str] = set()  # arrays that have lost members
        self.world = FaultState(instance.faults)
        self.failures: list[Failure] = []
        self.sweeps: dict[str, SweepState] = {}
        self._trials = Counter(job.sweep for job in instance.jobs)  # trials left, by sweep
        self._min_runs = has_minimum(instance.site) or any(j.min_run_s for j in instance.jobs)
        self._past: Past = {}  # what tenants have held
        self.cluster = instance.cluster  # with the GPUs that are out of service now

    def next_submit_s(self) -> float:
        """Return the time at which the next job is submitted or eligible; infinity if none is."""
        return self.order.next_s()

    def next_report_s(self) -> float:
        """Return the time at which a running trial of a sweep next reports its loss."""
        observed = (self.lives[job_id] for job_id in self._observed)
        times = (live.next_stage_s for live in observed if live.job.sweep is not None)
        return min(times, default=float("inf"))

    def next_free_s(self) -> float:
        """Return when a running job is next as old as its minimum run time; infinity if none is."""
        if not self._min_runs:
            return float("inf")
        running, site = self.queue.running.values(), self.instance.site
        times = (state.held_s + least_run_s(site, state.job) for state in running)
        return min((time_s for time_s in times if time_s > self.now_s), default=float("inf"))

    def advance(self, now_s: float) -> tuple[int, int, int]:
        """Move the time on: jobs end, faults and repairs happen, then jobs are submitted.

        Return the numbers of jobs that completed, of jobs that may start from now on, and of faults
        and repairs that affect which jobs can run.
        """
        self.spending.advance(now_s)
        self.now_s = now_s
        self.nodes.advance(now_s)
        completed = 0
        while self.ends.next_s() <= now_s:
            self._end(self.ends.pop())
            completed += 1
        broke = sum(self._happen(event) for event in self.world.until(now_s))
        self._reslice()
        self._settle()
        submitted = 0
        for index, since_s, can in self.order.until(now_s):
            job = self.instance.jobs[index]
            if not can:
                self._record(index, never_run(job, since_s))
                continue
            live = LiveJob.submit(index, since_s, self.instance, self.knowledge)
            self.lives[live.job.id] = live
            self.spending.weight += Fraction(job.weight)
            self.queue.submit(live.job.id, live.index, live.state)
            sweep = live.job.sweep
            if sweep is not None and sweep not in self.sweeps:
                self.sweeps[sweep] = SweepState(sweep=self.instance.sweeps[sweep])
            submitted += 1
        return completed, submitted, broke

    def _end(self, live: LiveJob) -> None:
        """End a job that is complete or has failed for good; a job that may try again waits."""
        retries, end_s, cut = self.instance.faults.retries, live.end_s, live.cut
        dead = live.fails and retries is not None and live.failed >= retries
        if live.fails:
            self._fail(live, end_s, None)
            cut = not dead and live.state.ran_s >= live.limit_s  # both at the same time
            if not dead and not cut:
                return
        else:
            self._close(live, live.release(end_s, complete=not cut))
            self.ledger.release(live.job.id)
        self._leave(live, live.outcome(end_s, failed=dead, cut=cut))

    def discard(self, job_ids: Iterable[str]) -> None:
        """End waiting trials of sweeps that the policy gives up."""
        for job_id in job_ids:
            live = self.lives[job_id]
            self._leave(live, live.outcome(self.now_s, discarded=True))

    def _leave(self, live: LiveJob, outcome: JobOutcome) -> None:
        """Record the end of a job; the log of a sweep's trial is kept."""
        self.queue.leave(live.job.id)
        del self.lives[live.job.id]
        self.spending.weight -= Fraction(live.job.weight)
        if self.beliefs is not None:
            complete = outcome.state == "completed"
            self.beliefs.end(live.job, live.work if complete else None)
        self._record(live.index, outcome)
        sweep, log = live.job.sweep, live.log()
        if sweep is None:
            return
        self._trials[sweep] -= 1
        if not self._trials[sweep]:
            del self.sweeps[sweep]
        elif log is not None:
            known = self.sweeps[sweep]
            self.sweeps[sweep] = replace(known, ended=known.ended | {live.job.id: log})

    def _record(self, index: int, outcome: JobOutcome) -> None:
        """Record the end of a job, for which others may wait."""
        self.outcomes[index] = outcome
        self.completed += 1
        if outcome.end_s is not None:
            self.order.ended(outcome.id, outcome.end_s, well=outcome.state == "completed")

    def _fail(self, live: LiveJob, now_s: float, node: int | None) -> None:
        """Stop a job after a node's or (None) its own failure; it waits with its saved work."""
        segment, failure = live.fail(now_s, node, live.job.costs or self.instance.costs)
        self._close(live, segment)
        self.failures.append(failure)
        self.queue.wait(live.job.id, live.state)
        self.ledger.release(live.job.id)

    def _reslice(self) -> None:
        """Let arrays that have lost members continue without them, immediately and without cost."""
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
        live = self.lives[job_id]
        observed, pinned = job_id in self._observed, job_id in self.pinned
        speed = self.world.speed_of(allocation)
        self._close(live, live.narrow(self.now_s, allocation, self.rates, speed))
        self._enter(live, allocation)
        if observed:
            self._observed[job_id] = None
        if pinned:
            self.pinned[job_id] = None

    def _happen(self, event: Event) -> bool:
        """Carry out an event on a node; return whether it affects which jobs can run."""
        node, fault, world = event.node, event.fault, self.world
        if isinstance(fault, Straggler):
            world.speed[node] = fault.speed
            if event.kind == "at speed":
                del world.speed[node]
            for live in self._on(node):
                held = live.state.allocation
                assert held is not None
                live.change_speed(event.time_s, self.rates, world.speed_of(held))
                self.ends.expect(live)
            return False
        if event.kind == "drains":
            if fault.open:
                self.nodes.leaving[node] = fault.start_s
            else:
                self.nodes.draining.add(node)
            return False
        if event.kind == "repaired":
            self.nodes.draining.discard(node)
            self.nodes.come_back(node, self.now_s)
            return True
        self.nodes.leaving.pop(node, None)
        for live in self._on(node):
            if fault.notice_s is None:
                self._fail(live, event.time_s, node)
            else:
                self._stop(live.job.id)
                self.ledger.release(live.job.id)
        if node not in self.nodes.off:
            self.nodes.go_off(node, self.now_s)
        return True

    def _on(self, node: int) -> list[LiveJob]:
        held = self.held().items()
        return [self.lives[i] for i, a in held if any(n == node for n, _ in a.placement)]

    def _settle(self) -> None:
        """Switch off draining nodes without jobs, and update which GPUs can be used."""
        nodes = self.nodes
        if not nodes.draining and not nodes.off and not self.cluster.out:
            return
        used = used_nodes(self.held().values())
        for node in sorted(nodes.draining - nodes.off.keys() - used):
            nodes.go_off(node, self.now_s)
        out = nodes.out(self.held())
        if out == self.cluster.out:
            return
        whole = self.instance.cluster
        self.cluster = msgspec.structs.replace(whole, out=out) if out else whole
        self.ledger = Ledger(self.cluster)
        self.ledger.accept(Plan(allocations=self.held(), asleep=tuple(sorted(self.nodes.asleep))))

    def snapshot(self, length_s: float, ahead_s: float = 0.0) -> Round:
        """Return the round to decide now, with the limits at `ahead_s` from now."""
        if not self.world.silent(self.now_s):
            self._measure()
        for job_id in [*self.pinned]:
            if self.lives[job_id].unpin(self.now_s):
                del self.pinned[job_id]
                self.queue.run(job_id, self.lives[job_id].state)
        instance = self.instance
        seen = Round(
            name=instance.name,
            now_s=self.now_s,
            length_s=length_s,
            cluster=self.cluster,
            profiles=instance.profiles,
            waiting=tuple(self.queue.waiting.values()),
            running=tuple(self.queue.running.values()),
            costs=instance.costs,
            asleep=tuple(sorted(self.nodes.asleep)),
            waking=tuple(sorted(self.nodes.waking)),
            sweeps=dict(self.sweeps),
            site=instance.site,
            used=used_by(
                self._past,
                self.topology.pools,
                self.queue.running.values(),
                self.now_s,
                instance.site.usage_half_life_s,
            ),
            leaving=tuple(sorted(self.nodes.leaving.items())),
            **self.spending.limits(self.now_s, ahead_s),
        )
        return seen if self.beliefs is None else self.beliefs.believe(seen)

    def _measure(self) -> None:
        """Measure the changes in running jobs, and show reports that are old enough.

        All reports are equally late; a job with a pending report is not measured again.
        """
        late_s = self.world.faults.report_s
        for job_id in self._observed:
            live = self.lives[job_id]
            if live.report is None and live.next_stage_s <= self.now_s:
                live.observe(self.now_s)
            if live.report is not None and live.report[0] + late_s <= self.now_s:
                before = live.state
                live.show()
                self.queue.run(job_id, live.state)
                if self.beliefs is not None:
                    self._learn(live, before, self.beliefs)

    def _learn(self, live: LiveJob, before: JobState, beliefs: "Beliefs") -> None:
        """Let the beliefs learn from a job's measurement."""
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

    def limit_events(self) -> list[float]:
        """Return when idle nodes may begin to break a limit: it changes, or the budget ends."""
        if self.next_submit_s() == float("inf"):
            return []
        changes = (series.next_change(self.now_s) for series in self.instance.budget.series)
        spent_s = self.spending.lasts_until_s(self.now_s)
        late = [spent_s] if spent_s > self.now_s + self.instant_s else []
        return [*(change for change in changes if change is not None), *late]

    def must_rest(self) -> bool:
        """Return whether idle nodes that stay awake break a limit now or are about to."""
        if self.spending.lasts_until_s(self.now_s) <= self.now_s + self.instant_s:
            return True
        if self.instance.budget.power_cap_w is None and not self._racks_are_capped:
            return False
        return bool(self.ledger.check(replace(self.snapshot(1.0), energy_j=None), Plan()))

    @property
    def instant_s(self) -> float:
        """The tolerance in seconds within which a time counts as now."""
        return SECOND * max(1.0, self.now_s)

    def held(self) -> dict[str, Allocation]:
        """Return the allocation of every running job."""
        return dict(self.queue.held)

    def difference(self, plan: Plan) -> Change:
        """Return the changes that a plan makes."""
        return change_of(self.held(), plan, self.nodes.asleep)

    def apply(self, change: Change) -> tuple[int, int, int]:
        """Carry out a change; return how many jobs started, stopped and changed."""
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
        if change.asleep or self.nodes.asleep:
            self.nodes.sleep(set(change.asleep), self.now_s)
        own_s = {i: self._own_s(i, a) for i, a in held.items() if a.array is not None}
        together_s = ready_together(held, own_s)
        for job_id, allocation in held.items():
            self._hold(job_id, allocation, together_s.get(allocation.array, 0.0))
        self._left.clear()
        self._settle()
        return len(held) - len(moved), len(change.stopped), len(moved)

    def _stop(self, job_id: str) -> None:
        """Stop a job in an orderly way: it waits, and has lost no work."""
        live = self.lives[job_id]
        self._close(live, live.release(self.now_s, complete=False))
        self.queue.wait(live.job.id, live.state)

    def _own_s(self, job_id: str, allocation: Allocation) -> float:
        """Return the time at which a starting job would be ready by itself."""
        live = self.lives[job_id]
        costs = live.job.costs or self.instance.costs
        from_s = self.nodes.hold_from_s(allocation, self.now_s)
        return from_s + live.pause_s(self.now_s, allocation, costs)

    def _hold(self, job_id: str, allocation: Allocation, together_s: float) -> None:
        live = self.lives[job_id]
        if self.beliefs is not None:
            allocation = self._as_drawn(live.job, allocation)
        ready_s = self.nodes.hold_from_s(allocation, self.now_s)
        costs = live.job.costs or self.instance.costs
        speed = self.world.speed_of(allocation)
        live.hold(self.now_s, allocation, self.rates, ready_s, costs, speed, together_s)
        if live.pinned:
            self.pinned[job_id] = None
        if not live.segments:
            self.order.started(job_id, self.now_s)
        self._enter(live, allocation)
        uneven = live.truth.throughput != 1.0 or self.world.faults.stragglers or live.watched
        if live.curve is not None or live.learning is not None or uneven:
            self._observed[job_id] = None

    def _enter(self, live: LiveJob, allocation: Allocation) -> None:
        """Enter a job's new segment in the queue, on the meter, and among the expected ends."""
        self.queue.run(live.job.id, live.state)
        self.nodes.meter.begin(live.index, allocation.option, live.resume_s, live.truth.power)
        self.ends.expect(live)

    def _as_drawn(self, job: Job, allocation: Allocation) -> Allocation:
        """Return an allocation with the watts of its profile, whatever the plan believed."""
        option = allocation.option
        pool = self.topology.pools[option.pool]
        nodes = -(-option.gpus // pool.gpus_per_node)
        at = Configuration(option.computing, nodes, option.batch, option.clock)
        power_w = job_power_w(self.instance.profiles[job.profile], pool.gpu_type, at)
        power_w += (option.gpus - option.computing) * pool.gpu_type.idle_w
        own_w = power_w / option.width if option.share is None else power_w * option.share
        option = msgspec.structs.replace(option, power_w=own_w)
        return msgspec.structs.replace(allocation, option=option)

    def _close(self, live: LiveJob, segment: Segment) -> None:
        """Record a job's finished segment on the meter, and the loss of a member in its array."""
        if segment.array is not None:
            self._left.add(segment.array)
        half_life_s = self.instance.site.usage_half_life_s
        if half_life_s is not None:
            span = segment.start_s, segment.end_s
            ended(self._past, self.topology.pools, live.job, segment.option, *span, half_life_s)
        self.pinned.pop(live.job.id, None)
        self.nodes.meter.end(live.index, segment, live.truth.power)
        self._observed.pop(live.job.id, None)

    def close(self) -> tuple[JobOutcome, ...]:
        """End open sleeps, wake-ups and times out of service, and return every job's history."""
        self.nodes.close(self.now_s)
        missing = [i for i, outcome in enumerate(self.outcomes) if outcome is None]
        if missing:
            raise RondaError(f"{len(missing)} jobs never completed: a defect in the driver")
        return tuple(outcome for outcome in self.outcomes if outcome is not None)


def _beliefs(knowledge: Knowledge, predictor: Predictor | None) -> "Beliefs | None":
    """Return beliefs that learn from jobs that run, if the level of knowledge requires them."""
    if predictor is not None and knowledge != "history":
        raise InputError("predictor", f"the knowledge {knowledge!r}", "history, which it tells")
    if knowledge not in LEARNT:
        return None
    from ronda.horizon.beliefs import Beliefs  # needs SciPy

    return Beliefs(history=knowledge == "history", predictor=predictor)
