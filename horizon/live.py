"""A live job in the driver: its true progress, and the state that policies may see.

Only this module and the driver read a job's ``truth``.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from ronda.instances.cluster import GpuType
from ronda.instances.instance import LEARNT, Instance, Knowledge
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Truth
from ronda.instances.learning import LearningCurve, Losses, TrainingLog
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.efficiency import efficiency_at, noise_at, stages
from ronda.instances.models.learning import epochs_over, next_end, training_log
from ronda.instances.models.measured import Way, way_of
from ronda.instances.models.sharing import pace
from ronda.instances.models.throughput import fastest_step, samples_per_s, slowdown
from ronda.instances.profile import NoiseCurve, Profile, Rated, Rigid
from ronda.instances.schedule import Failure, JobOutcome, Segment

INFINITY = float("inf")

MOST_IN_VAIN = 250
"""Consecutive allocations without progress after which a job is pinned to the next one.

Tiresias makes 140 of them on the Helios trace of the golden results; a livelock never ends.
"""


@dataclass(slots=True)
class Stages:
    """A job's rates of progress on its allocation, for each stage of its own progress."""

    until: tuple[float, ...]  # work at which each stage ends, ascending, the last one infinite
    rates: tuple[float, ...]  # true work per second in each stage

    def seconds(self, done: float, target: float) -> float:
        """Return the time from `done` to `target`."""
        k = bisect_right(self.until, done)
        total = 0.0
        while self.until[k] < target:
            total += (self.until[k] - done) / self.rates[k]
            done = self.until[k]
            k += 1
        return total + (target - done) / self.rates[k]

    def advance(self, done: float, seconds: float) -> float:
        """Return the work done after `seconds` more."""
        k = bisect_right(self.until, done)
        while self.until[k] < INFINITY:
            needed = (self.until[k] - done) / self.rates[k]
            if needed > seconds:
                break
            seconds -= needed
            done = self.until[k]
            k += 1
        return done + self.rates[k] * seconds


class TrueRates:
    """A cache of the true rates of options on placements; many jobs share a few dozen of them."""

    def __init__(self, instance: Instance) -> None:
        self.profiles = instance.profiles
        self.curves = instance.curves
        self.topology = instance.cluster.topology
        self._known: dict[tuple[object, ...], Stages] = {}

    def stages(
        self, job: Job, curve: str | None, allocation: Allocation, factor: float = 1.0
    ) -> Stages:
        """Return the rates of `job` on an allocation, over the stages of its noise curve.

        The job runs at `factor` times the speed of its profile.
        """
        option, way = allocation.option, self._way(allocation)
        array = (option.mode, option.width)
        fraction = (option.part, option.share)
        key = (job.profile, curve, option.pool, *way, *array, *fraction, factor)
        if key not in self._known:
            profile, gpu_type = self._kind(job, option.pool)
            speed = float(samples_per_s(profile, gpu_type, Configuration(*way))) * factor
            speed *= pace(profile, gpu_type.name, *array) * gpu_type.speed(*fraction)
            until: tuple[float, ...] = (INFINITY,)
            rates: tuple[float, ...] = (speed,)
            if curve is not None:
                until, noise = zip(*stages(self.curves[curve]), strict=True)
                rates = tuple(
                    speed * efficiency_at(n, option.batch, profile.base_batch) for n in noise
                )
            self._known[key] = Stages(until, rates)
        return self._known[key]

    def step(self, job: Job, held: Allocation, factor: float) -> tuple[Way, float, float] | None:
        """Return the step that `job` measures on what it holds, `factor` times as fast as profiled.

        The result has the configuration, the seconds of computing in a pass at full clock, and the
        seconds of synchronising; it is None for jobs without steps or without whole GPUs.
        """
        profile, gpu_type = self._kind(job, held.option.pool)
        model = profile.throughput[gpu_type.name]
        if isinstance(model, Rigid | Rated) or held.option.share is not None:
            return None
        gpus, nodes, batch, clock, racks = way = self._way(held)
        step = fastest_step(profile, gpu_type, Configuration(*way))
        seconds, passes = float(step.seconds) / factor, float(step.passes)
        sync_s = seconds * float(step.sync_share)
        compute_s = (seconds - sync_s) / (passes * float(slowdown(model.phi, clock)))
        measured = way_of(model, gpus, nodes, batch / (gpus * passes), racks)
        return measured, compute_s, sync_s

    def _way(self, held: Allocation) -> tuple[int, int, float, float, int]:
        option = held.option
        racks = self.topology.racks_of(node for node, _ in held.placement)
        return option.computing, len(held.placement), option.batch, option.clock, racks

    def _kind(self, job: Job, pool: int) -> tuple[Profile, GpuType]:
        return self.profiles[job.profile], self.topology.pools[pool].gpu_type


class Base(NamedTuple):
    """The time and the work done from which a job progresses at the given rates."""

    since_s: float
    done: float
    stages: Stages


@dataclass(slots=True)
class LiveJob:
    """A job from its submission to its end.

    The job has done `done` by `since_s`. That is the last time at which its allocation began to
    progress, it was measured, or its speed changed.
    """

    index: int  # its place in the instance (order of submission)
    job: Job  # without its truth
    truth: Truth
    work: float
    curve_name: str | None
    curve: NoiseCurve | None
    state: JobState
    learning: LearningCurve | Losses | None = None
    done: float = 0.0
    since_s: float = 0.0
    stages: Stages | None = None  # rates of the running allocation
    start_s: float = 0.0
    resume_s: float = 0.0
    start_done: float = 0.0
    in_vain: int = 0  # consecutive allocations that it left without progress
    end_s: float = INFINITY  # the time of its completion if nothing changes
    next_stage_s: float = INFINITY  # the next change of the noise scale, or log of an epoch
    segments: list[Segment] = field(default_factory=list)
    past: list[Base] = field(default_factory=list)  # of the running allocation, before since_s
    failed: int = 0  # the number of its own failures
    fails: bool = False  # whether a failure ends the allocation at end_s
    limit_s: float = INFINITY  # seconds of holding GPUs after which the site ends it
    cut: bool = False  # whether this limit ends the allocation at end_s
    eligible_s: float | None = None  # the time from which it could start, if after submission
    report: tuple[float, dict[str, Any]] | None = None  # time and values of a pending report
    watched: bool = False  # whether its speed is measured as soon as it progresses

    @classmethod
    def submit(
        cls, index: int, since_s: float, instance: Instance, knowledge: Knowledge
    ) -> "LiveJob":
        """Return a new live job, which may start from `since_s` on, as far as policies know it."""
        job = instance.jobs[index]
        if job.truth is None:
            raise ValueError(f"job {job.id!r} has no truth: its instance was not validated")
        estimate = job.estimate if knowledge == "declared" else None
        if knowledge == "oracle":
            estimate = Estimate(work=job.truth.work)
        public = msgspec.structs.replace(job, truth=None, estimate=estimate)
        name = job.truth.curve
        curve = instance.curves[name] if name is not None else None
        state = JobState(
            job=public, since_s=since_s, noise=None if curve is None else noise_at(curve, 0.0)
        )
        truth = job.truth
        live = cls(index, public, truth, truth.work, name, curve, state, truth.learning)
        live.watched = knowledge in LEARNT
        live.eligible_s = since_s if since_s > job.submit_s else None
        if job.limit_s is not None and instance.site.kills_at_limit:
            live.limit_s = job.limit_s
        return live

    def hold(
        self,
        now_s: float,
        allocation: Allocation,
        rates: TrueRates,
        ready_s: float,
        costs: Costs,
        speed: float = 1.0,
        together_s: float = 0.0,
    ) -> None:
        """Begin to hold an allocation whose nodes are awake at `ready_s`, and run at `speed`.

        The other jobs of its array are not ready before `together_s`.
        """
        pause_s = self.pause_s(now_s, allocation, costs)
        self.start_s, self.start_done = now_s, self.done
        self.state = self.state.holding(allocation, now_s, pause_s, ready_s, together_s)
        self.resume_s = self.since_s = self.state.since_s
        self.past = []
        self._run_at(rates, allocation, speed)
        if self.in_vain >= MOST_IN_VAIN:
            pinned = msgspec.structs.replace(self.job, preemptible=False)
            self.state = msgspec.structs.replace(self.state, job=pinned)

    def pause_s(self, now_s: float, allocation: Allocation, costs: Costs) -> float:
        """Return the initial pause of an allocation if its nodes are awake."""
        started = self.state.started
        moved = started and self.segments[-1].end_s == now_s
        pause_s = costs.pause(allocation.option.gpus, started=started, running=moved)
        return pause_s + self.state.owed_at(now_s)

    def narrow(
        self, now_s: float, allocation: Allocation, rates: TrueRates, speed: float
    ) -> Segment:
        """Continue in an array that other jobs have left; return the segment in the wider array.

        A report that is due or pending is measured again.
        """
        in_vain, due = self.in_vain, self.report is not None or self.next_stage_s <= now_s
        segment = self._end_segment(now_s, self.done_at(now_s))
        self.in_vain = min(self.in_vain, in_vain)
        self.start_s, self.start_done = now_s, self.done
        self.state = self.state.narrowed(allocation, now_s, self.done)
        self.resume_s = self.since_s = self.state.since_s
        self.past, self.report = [], None
        if self.done < self.work:  # otherwise it is being torn down, and its end stays
            self._run_at(rates, allocation, speed)
            self.next_stage_s = now_s if due else self.next_stage_s
        return segment

    def _run_at(self, rates: TrueRates, allocation: Allocation, speed: float) -> None:
        """Progress at a speed from `since_s` on; compute when the allocation and stage end."""
        factor = self.truth.throughput * speed
        self.stages = rates.stages(self.job, self.curve_name, allocation, factor)
        failures = self.truth.failures
        self.fails = self.failed < len(failures)
        target = failures[self.failed] if self.fails else self.work
        self.end_s = self.since_s + self.stages.seconds(self.done, target)
        self.end_s += 0.0 if self.fails else allocation.option.teardown_s
        state = self.state
        cut_s = state.held_s + max(0.0, self.limit_s - state.ran_s)
        self.cut = cut_s < self.end_s
        if self.cut:
            self.end_s, self.fails = cut_s, False
        self._foresee_stage()
        if factor != 1.0 or self.watched:
            self.next_stage_s = self.since_s  # its rate can be measured from then on

    def change_speed(self, now_s: float, rates: TrueRates, speed: float) -> None:
        """Continue at another speed; a job that has done its work is unaffected by it."""
        allocation = self.state.allocation
        assert allocation is not None
        if self.done_at(now_s) >= self.work:
            return
        self._rebase(now_s)
        self._run_at(rates, allocation, speed)
        self.next_stage_s = self.since_s

    def _rebase(self, now_s: float) -> None:
        """Update the work done; the earlier progress is kept, because a failure goes back to it."""
        if self.stages is not None and now_s > self.since_s:
            self.past.append(Base(self.since_s, self.done, self.stages))
            self.done, self.since_s = self.done_at(now_s), now_s

    @property
    def pinned(self) -> bool:
        """Whether policies may not stop or change the job until it has made progress."""
        return self.state.job is not self.job

    def unpin(self, now_s: float) -> bool:
        """Unpin a pinned job if it has made progress; return whether it has."""
        if now_s <= self.resume_s:
            return False
        self.state = msgspec.structs.replace(self.state, job=self.job)
        return True

    def fail(self, now_s: float, node: int | None, costs: Costs) -> tuple[Segment, Failure]:
        """End the allocation after a failure of a node, or (None) of the job itself.

        The job goes back to its last checkpoint; it has one per `costs.checkpoint_s` of progress.
        """
        reached = self.done_at(now_s) if node is not None else self.truth.failures[self.failed]
        self.failed += node is None
        seconds = max(0.0, now_s - self.resume_s)
        kept_s = costs.kept_s(seconds)
        kept = self._done_by(self.resume_s + kept_s) if kept_s < seconds else reached
        lost = Failure(
            time_s=now_s,
            job=self.job.id,
            node=node,
            lost=max(0.0, reached - kept),
            lost_s=seconds - kept_s,
        )
        return self._release(now_s, min(kept, reached)), lost

    def _done_by(self, time_s: float) -> float:
        for base in reversed(self.past):
            if base.since_s <= time_s < self.since_s:
                return min(self.work, base.stages.advance(base.done, time_s - base.since_s))
        return self.done_at(time_s)

    def release(self, now_s: float, *, complete: bool) -> Segment:
        """End the allocation and return its segment."""
        return self._release(now_s, self.work if complete else self.done_at(now_s))

    def _release(self, now_s: float, done: float) -> Segment:
        segment = self._end_segment(now_s, done)
        self.since_s, self.stages, self.report = now_s, None, None
        self.end_s = self.next_stage_s = INFINITY
        self.state = msgspec.structs.replace(
            self.state.stopped(now_s, done),
            job=self.job,
            noise=None if self.curve is None else noise_at(self.curve, self.done),
        )
        return segment

    def _end_segment(self, now_s: float, done: float) -> Segment:
        allocation = self.state.allocation
        assert allocation is not None
        self.done = done
        self.in_vain = 0 if self.done > self.start_done else self.in_vain + 1
        segment = Segment(
            start_s=self.start_s,
            resume_s=min(self.resume_s, now_s),
            end_s=now_s,
            done=self.done - self.start_done,
            option=allocation.option,
            placement=allocation.placement,
            array=allocation.array,
            parts=allocation.parts,
        )
        self.segments.append(segment)
        return segment

    def done_at(self, now_s: float) -> float:
        """Return the true work done by `now_s`."""
        if self.stages is None or now_s <= self.since_s:
            return self.done
        return min(self.work, self.stages.advance(self.done, now_s - self.since_s))

    def observe(self, now_s: float) -> None:
        """Measure progress, noise scale and rate when the last measurement is outdated."""
        assert self.state.allocation is not None
        assert self.stages is not None
        self._rebase(now_s)
        self._foresee_stage()
        rate = self.stages.rates[bisect_right(self.stages.until, self.done)]
        held = self.state.allocation
        option = msgspec.structs.replace(held.option, rate=rate)
        measured = {
            "allocation": msgspec.structs.replace(held, option=option),
            "noise": None if self.curve is None else noise_at(self.curve, self.done),
            "since_s": now_s,
            "done": self.done,
            "log": self.log(),
        }
        self.report = now_s, measured

    def show(self) -> None:
        """Copy the last measurement into the state that policies see."""
        assert self.report is not None
        self.state = msgspec.structs.replace(self.state, **self.report[1])
        self.report = None

    def log(self) -> TrainingLog | None:
        """Return the training log as of the last measurement or stop."""
        learning, epoch, known = self.learning, self.job.epoch, self.state.log
        if learning is None or epoch is None:
            return None
        epochs = epochs_over(self.done, epoch)
        if epochs == (known.epochs if known is not None else 0):
            return known
        return training_log(learning, epochs, epochs * epoch / self.work)

    def _foresee_stage(self) -> None:
        """Compute the end of the current stage or epoch."""
        self.next_stage_s = INFINITY
        if self.stages is None:
            return
        end = self.stages.until[bisect_right(self.stages.until, self.done)]
        if self.learning is not None and self.job.epoch is not None:
            end = min(end, next_end(self.done, self.job.epoch))
        if end < self.work:
            self.next_stage_s = self.since_s + self.stages.seconds(self.done, end)

    def outcome(
        self, end_s: float, *, failed: bool = False, discarded: bool = False, cut: bool = False
    ) -> JobOutcome:
        """Return the history of a job that has ended."""
        return JobOutcome(
            id=self.job.id,
            submit_s=self.job.submit_s,
            end_s=end_s,
            segments=tuple(self.segments),
            failed=failed,
            discarded=discarded,
            ended_by="time limit" if cut else None,
            eligible_s=self.eligible_s,
        )


def never_run(job: Job, end_s: float) -> JobOutcome:
    """Return the history of a job that turns out at `end_s` never to be able to start."""
    by: Final = "dependency failed"
    return JobOutcome(id=job.id, submit_s=job.submit_s, end_s=end_s, segments=(), ended_by=by)
