"""The check of one job's history in a schedule: times, legality, delays, progress, work."""

from bisect import bisect_right
from itertools import pairwise
from math import inf

import numpy as np

from ronda.instances.check.faults import World, saved_s
from ronda.instances.check.option import Examiner
from ronda.instances.check.physics import Pace, Physics
from ronda.instances.check.plan import continues
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Job, Truth
from ronda.instances.profile import NoiseCurve
from ronda.instances.schedule import Failure, JobOutcome, Schedule, Segment
from ronda.instances.violation import RELATIVE, SECOND, Fault, Violation, exceeds


class Histories:
    """A checker of the histories of an instance's jobs."""

    def __init__(self, instance: Instance, schedule: Schedule) -> None:
        self.instance, self.schedule = instance, schedule
        self.examiner = Examiner(instance.cluster, instance.profiles)
        self._wake_s: list[float] = instance.cluster.topology.wake_s.tolist()
        self._sleep_ends: dict[int, list[float]] = {}
        for node, _, end_s in schedule.sleeps:
            self._sleep_ends.setdefault(node, []).append(end_s)
        for ends in self._sleep_ends.values():
            ends.sort()
        self._world = World(instance.faults, schedule.failures)

    def unmatched(self) -> list[Violation]:
        """Return the violations by claimed failures at times when the job does not stop."""
        ends = {o.id: {s.end_s for s in o.segments} for o in self.schedule.jobs}
        return self._world.unmatched(ends)

    def check(self, job: Job, outcome: JobOutcome) -> list[Violation]:
        """Return every violation within the history of one job."""
        faults = self._times(job, outcome)
        for segment in outcome.segments:
            faults += self._legality(job, segment)
        if not faults:
            faults += self._delays(job, outcome)
            faults += self._work(job, outcome)
        return [fault.at(f"job {job.id}") for fault in faults]

    def _times(self, job: Job, outcome: JobOutcome) -> list[Fault]:
        """Return the faults in the order of times, compared without tolerance."""
        faults, segments = [], outcome.segments
        if outcome.submit_s != job.submit_s:
            faults.append(Fault("submit", f"submitted at {outcome.submit_s:g} s"))
        for k, segment in enumerate(segments):
            if not segment.start_s <= segment.resume_s <= segment.end_s:
                times = (segment.start_s, segment.resume_s, segment.end_s)
                faults.append(Fault("times", f"start, resume and end of segment {k} are {times}"))
            if k > 0 and segment.start_s < segments[k - 1].end_s:
                faults.append(Fault("overlap", f"segment {k} starts before the last one ends"))
        if segments and segments[0].start_s < job.submit_s:
            message = f"starts at {segments[0].start_s:g} s, submitted at {job.submit_s:g} s"
            faults.append(Fault("early", message))
        unrun = outcome.discarded or outcome.ended_by == "dependency failed"
        end_s = None if unrun else outcome.end_s
        if end_s is not None and (not segments or segments[-1].end_s != end_s):
            faults.append(Fault("end", f"does not run when it ends at {end_s:g} s"))
        faults += _discard(job, outcome)
        if segments and segments[-1].end_s > self.schedule.end_s:
            faults.append(Fault("end", f"runs beyond the end at {self.schedule.end_s:g} s"))
        if not job.preemptible and not all(
            same(a, b) or self._world.outage(a) or self._world.claim(job.id, a)
            for a, b in pairwise(segments)
        ):
            faults.append(Fault("must-run", "is stopped or changed, but may not be preempted"))
        return faults

    def _legality(self, job: Job, segment: Segment) -> list[Fault]:
        """Return the faults of a segment, apart from its expected rate."""
        option = segment.option
        faults = self.examiner.placement(option, segment.placement, segment.parts)
        verdict = self.examiner.verdict(job, option, None if faults else segment.placement)
        return [*faults, *verdict.faults, *self.examiner.option_power(option, verdict)]

    def _delays(self, job: Job, outcome: JobOutcome) -> list[Fault]:
        """Return the faults of segments that progress before their pause and wake-up are over.

        If a job is stopped during a pause, it still owes the rest when it resumes.
        """
        faults = []
        costs = self.instance.costs if job.costs is None else job.costs
        before: Segment | None = None
        progressed = False
        pause_s = ready_s = 0.0
        for k, segment in enumerate(outcome.segments):
            if before is None or not same(before, segment):
                owed_s = 0.0 if before is None else min(pause_s, max(0.0, ready_s - before.end_s))
                pause_s = owed_s
                pause_s += _delay(costs, segment, before, progressed=progressed)
                ready_s = self._awake_s(segment) + pause_s
            never = segment.resume_s == segment.end_s
            if segment.resume_s < ready_s - SECOND and not never:
                message = (
                    f"segment {k} progresses from {segment.resume_s:.9g} s, not from {ready_s:.9g}"
                )
                faults.append(Fault("delay", message))
            before, progressed = segment, progressed or not never
        return faults

    def _awake_s(self, segment: Segment) -> float:
        ready_s = segment.start_s
        if not self._sleep_ends:
            return ready_s
        for node, _ in segment.placement:
            ends = self._sleep_ends.get(node, [])
            k = bisect_right(ends, segment.start_s)
            if k > 0:
                ready_s = max(ready_s, ends[k - 1] + self._wake_s[node])
        return ready_s

    def _work(self, job: Job, outcome: JobOutcome) -> list[Fault]:
        """Return the faults of segments whose work is not the integral of the true rate.

        The sum of the segments' work is checked in addition.
        """
        truth = job.truth
        if truth is None:
            return [Fault("truth", "has no true work to compare with")]
        if truth.curve is not None and truth.curve not in self.instance.curves:
            return [Fault("truth", f"there is no curve {truth.curve!r}")]
        ended, cut = outcome.state == "completed", outcome.ended_by == "time limit"
        faults, done, failed = [], 0.0, 0
        for k, segment in enumerate(outcome.segments):
            last = segment is outcome.segments[-1]
            complete = last and ended
            expected, slack = self._gross(job, truth, segment, done, complete=complete)
            due = truth.failures[failed] if failed < len(truth.failures) else inf
            claim = self._world.claim(job.id, segment)
            own = not done + expected < due - slack
            if done + expected > due + slack:
                faults.append(Fault("failure", f"segment {k} goes on after it fails at {due:.9g}"))
            if not complete and not (last and cut and claim is None):
                faults += self._world.cause(segment, claim, own=own)
            if claim is not None:
                faults += self._lost(job, truth, claim, (k, segment), (done, expected, slack))
                expected -= claim.lost
                failed += claim.node is None
            # Times are rounded, so the work of a microsecond is within the tolerance.
            if not abs(segment.done - expected) <= slack:
                seconds = segment.end_s - segment.resume_s
                message = f"segment {k} did {segment.done:.9g} in {seconds:.9g} s, not "
                faults.append(Fault("progress", f"{message}{expected:.9g}"))
            done += segment.done
        retries = self._world.retries
        if outcome.failed != (retries is not None and failed > retries):
            faults.append(Fault("failure", f"fails {failed} times, of which {retries} are allowed"))
        if exceeds(done, truth.work) or (ended and exceeds(truth.work, done)):
            faults.append(Fault("work", f"did {done:.9g} of {truth.work:.9g}"))
        return faults

    def _gross(
        self, job: Job, truth: Truth, segment: Segment, done: float, *, complete: bool
    ) -> tuple[float, float]:
        """Return the work of a segment before any loss by a failure, and its tolerance."""
        expected, rate = self._progress(job, truth, segment, done, segment.end_s)
        teardown_s = segment.option.teardown_s
        if teardown_s and done + expected > truth.work:  # the job held its GPUs after its last work
            worked_s = max(segment.resume_s, segment.end_s - teardown_s)
            in_time, _ = self._progress(job, truth, segment, done, worked_s)
            expected = in_time if complete else truth.work - done
        return expected, RELATIVE * max(abs(segment.done), expected) + SECOND * rate

    def _lost(
        self,
        job: Job,
        truth: Truth,
        claim: Failure,
        at: tuple[int, Segment],
        work: tuple[float, float, float],
    ) -> list[Fault]:
        """Compare the loss claimed for a failure with the work since the last checkpoint.

        `at` is the segment's index and the segment. `work` is the work before it, the work in it,
        and the tolerance.
        """
        (k, segment), (done, gross, slack) = at, work
        costs = self.instance.costs if job.costs is None else job.costs
        kept_s = saved_s(costs, segment)
        kept, _ = self._progress(job, truth, segment, done, segment.resume_s + kept_s)
        lost, lost_s = max(0.0, gross - kept), segment.end_s - segment.resume_s - kept_s
        if abs(claim.lost - lost) <= slack and abs(claim.lost_s - lost_s) <= SECOND:
            return []
        message = f"segment {k} loses {claim.lost:.9g} of {claim.lost_s:.9g} s, not {lost:.9g}"
        return [Fault("failure", f"{message} of {lost_s:.9g} s")]

    def _progress(
        self, job: Job, truth: Truth, segment: Segment, done: float, until_s: float
    ) -> tuple[float, float]:
        """Return the work of a segment up to `until_s`, starting from `done`, and its highest rate.

        The rate is that of the profile times ``truth.throughput`` and the speed of the slowest
        node.
        """
        option = segment.option
        seconds = self._world.seconds(segment, until_s) * truth.throughput
        pace = self.examiner.verdict(job, option, segment.placement).actual
        assert pace is not None  # legality has been checked
        if truth.curve is None:
            return pace.samples_per_s * seconds, pace.samples_per_s * truth.throughput
        curve, physics = self.instance.curves[truth.curve], self.examiner.physics(job, option)
        work, rate = advance(physics, pace, option.batch, curve, done, seconds)
        return work, rate * truth.throughput


def _discard(job: Job, outcome: JobOutcome) -> list[Fault]:
    """Return the faults in the history of a discarded job."""
    if not outcome.discarded:
        return []
    faults = []
    if job.sweep is None or not job.preemptible or outcome.failed:
        faults.append(Fault("discard", "is given up, but no trial that may be stopped"))
    end_s = -inf if outcome.end_s is None else outcome.end_s
    last_s = outcome.segments[-1].end_s if outcome.segments else job.submit_s
    if end_s < last_s:
        faults.append(Fault("discard", f"is given up at {end_s:g} s, but there at {last_s:g} s"))
    return faults


def advance(
    physics: Physics, pace: Pace, batch: float, curve: NoiseCurve, done: float, seconds: float
) -> tuple[float, float]:
    """Return the work that an option does in `seconds`, and its highest rate.

    In each stage of the curve, the rate is samples/s x efficiency at the stage's noise scale.
    """
    ends = np.array(curve.until[:-1])
    scales = curve.scale[int(np.searchsorted(ends, done, side="right")) :]
    limits = [*ends[ends > done].tolist(), np.inf]
    position, fastest = done, 0.0
    for scale, limit in zip(scales, limits, strict=True):
        rate = pace.samples_per_s * physics.efficiency(batch, curve.batches, scale)
        fastest = max(fastest, rate)
        if position + rate * seconds <= limit:
            return position + rate * seconds - done, fastest
        seconds -= (limit - position) / rate
        position = limit
    raise AssertionError("the last stage has no end")


def same(before: Segment, after: Segment) -> bool:
    """Return whether a segment continues the previous one: no gap, same nodes, same option.

    Its array may be narrower.
    """
    if before.end_s != after.start_s:
        return False
    if before.array is not None and before.held.narrows_to(after.held):
        return True
    return continues(before.held, after.held)


def _delay(costs: Costs, segment: Segment, before: Segment | None, *, progressed: bool) -> float:
    """Return the pause of a new allocation, the cheaper of start and change before any progress.

    Scaling in place is enough if the costs allow it and the job held GPUs right up to then.
    """
    restart_s = costs.restart_s
    for up_to, seconds in costs.restart_by_gpus:
        restart_s = seconds
        if segment.option.gpus <= up_to:
            break
    if before is None:
        return costs.start_s
    if costs.scale_s is not None and before.end_s == segment.start_s:
        restart_s = costs.scale_s
    return restart_s if progressed else min(costs.start_s, restart_s)
