"""What a scheduler believes of jobs: sizes, speeds and gradient noise, from what it has seen.

It sees submissions, progress, completions, and step times and noise of what really ran; no truth,
and nothing from before the run. The models are those of `ronda.formulations.prediction`.

* **Speeds** are learnt at both levels: one model an application and GPU type, of all its jobs. A
  job of an application that was never measured may have what its user asked for, and others up to
  twice the most GPUs that were measured: growing tells more.
* **Sizes**, with ``history``, are those of jobs of the same application; of the same user as well;
  who asked for as many GPUs as well: of jobs that are complete, and of live ones what they have
  done. With ``none`` live jobs alone tell: no size is remembered. A `Predictor` takes the place of
  this: a job's size is told as it is submitted, and only that it has outlived a part of what was
  told changes it (`ronda.horizon.predicted`).
* **Noise** of a job that has not run yet is that with which the last one of its application began;
  where none has, it is not known, and the job keeps its batch.

Watts are those of the profiles while GPUs compute: a GPU that synchronises draws less, but how
long it does is learnt. So no plan draws more than it says.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from ronda.formulations.options.application import pool_shapes
from ronda.formulations.prediction.sizes import Sizes, likeness, pooled, sizes, within
from ronda.formulations.prediction.speeds import believed_model, carried
from ronda.horizon.predicted import Predicted
from ronda.instances.cluster import GpuType
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.models.fits import Predictor
from ronda.instances.models.measured import Measured, Way
from ronda.instances.models.power import gpu_power_w
from ronda.instances.profile import NoiseScale, PowerCurve, Profile, Rated, Rigid
from ronda.instances.round import Round
from ronda.instances.schedule import Forecast

REMEMBERED = 500
"""Complete jobs of an application that are remembered: the last ones."""

REPORTED = 100_000
"""Forecasts that are kept for a report: the last ones."""

NEWS = 0.01
"""Relative error of a step time from which on a model is fitted again."""

Level = tuple[str, str | None, int]


class Shown(NamedTuple):
    """How a job is shown to policies, and what that follows from."""

    shown: JobState
    of: JobState
    estimate: Estimate | None
    most_gpus: int
    noise: NoiseScale | None

    def goes_on(
        self, of: JobState, estimate: Estimate | None, most: int, noise: NoiseScale | None
    ) -> bool:
        """Return whether a job can be shown as before."""
        same = self.of is of and self.noise is noise and self.most_gpus == most
        return same and (self.estimate is estimate or self.estimate == estimate)


class First(msgspec.Struct, frozen=True):
    """What was told of a job's size first: the time, its work then, and the distribution."""

    time_s: float
    done: float
    work: list[float]
    mass: list[float]
    spread: float

    @property
    def sizes(self) -> Sizes:
        """The distribution."""
        return Sizes(np.array(self.work), np.array(self.mass), self.spread)

    @classmethod
    def of(cls, time_s: float, done: float, sizes: Sizes) -> "First":
        """Keep what is told of a job that has done `done`."""
        return cls(time_s, done, sizes.work.tolist(), sizes.mass.tolist(), sizes.spread)


class SavedBeliefs(msgspec.Struct, frozen=True):
    """What a `Beliefs` has learnt, so that it can be written; forecasts are left out."""

    complete: dict[str, list[tuple[Level, float]]]
    measured: list[tuple[tuple[str, str], list[tuple[Way, tuple[float, float, int]]]]]
    profiles: dict[str, Profile]
    began: dict[str, NoiseScale]
    first: dict[str, First]


class Beliefs:
    """What is believed by now; sizes of complete jobs are remembered with `history`.

    Jobs for which `alike` returns the same are of one kind: what users call an application.
    Without `speeds` those of the profiles are known.
    """

    def __init__(
        self,
        *,
        history: bool,
        predictor: Predictor | None = None,
        alike: Callable[[Job], str] = lambda job: job.profile,
        speeds: bool = True,
    ) -> None:
        self.history, self._alike, self._speeds = history, alike, speeds
        self._predicted = None if predictor is None else Predicted(predictor)
        self._complete: dict[str, deque[tuple[Level, float]]] = {}
        self._within: dict[str, tuple[float, int]] = {}
        self._measured: dict[tuple[str, str], Measured] = {}
        self._profiles: dict[str, Profile] = {}
        self._last: dict[str, Profile] = {}
        self._began: dict[str, NoiseScale] = {}
        self._shown: dict[str, Shown] = {}
        self._first: dict[str, First] = {}
        self.forecasts: deque[Forecast] = deque(maxlen=REPORTED)

    def save(self) -> SavedBeliefs:
        """Return what was learnt; a predictor has none of it."""
        return SavedBeliefs(
            complete={name: list(known) for name, known in self._complete.items()},
            measured=[(where, list(m.ways.items())) for where, m in self._measured.items()],
            profiles=dict(self._profiles),
            began=dict(self._began),
            first=dict(self._first),
        )

    def restore(self, saved: SavedBeliefs) -> None:
        """Go on from what was learnt."""
        self._complete = {n: deque(known, maxlen=REMEMBERED) for n, known in saved.complete.items()}
        self._within = {n: _within(known) for n, known in self._complete.items()}
        self._measured = {where: Measured(dict(ways)) for where, ways in saved.measured}
        self._profiles, self._began = dict(saved.profiles), dict(saved.began)
        self._first = dict(saved.first)

    def end(self, job: Job, work: float | None) -> None:
        """Learn that a job is gone, and how much `work` it was; None if it never completed."""
        first = self._first.pop(job.id, None)
        if work is not None and first is not None:
            of, done = first.sizes, first.done
            believed = done + of.left(done)[0]
            self._report("size", first.time_s, job, believed, work, of.share(work, done))
        if self._predicted is not None:
            self._predicted.end(job, work)
        elif work is not None and self.history:
            alike = self._alike(job)
            known = self._complete.setdefault(alike, deque(maxlen=REMEMBERED))
            known.append((self._levels(job), work))
            self._within[alike] = _within(known)
        self._shown.pop(job.id, None)

    def measure(self, where: tuple[str, str], way: Way, compute_s: float, sync_s: float) -> None:
        """Learn what a step took.

        Parameters
        ----------
        where
            Names of the job's profile and of the GPU type.
        way
            How the job ran.
        compute_s
            Seconds of computing in a pass, at full clock.
        sync_s
            Seconds of synchronising in the step that do not overlap with computing.
        """
        known = self._measured.setdefault(where, Measured())
        before_s = known.mean_s(way)
        known.add(way, compute_s, sync_s)
        if before_s is None or abs((compute_s + sync_s) / before_s - 1.0) > NEWS:
            if len({gpu_type for _, gpu_type in self._measured}) > 1:
                self._profiles.clear()  # what it tells of a GPU type counts for all applications
            else:
                self._profiles.pop(where[0], None)

    def remodel(self, profile: str) -> None:
        """Learn that a model says otherwise where its jobs can run; what was measured stays."""
        self._profiles.pop(profile, None)

    def judge(self, gpu_type: GpuType, began: JobState, real: float) -> None:
        """Report the `real` rate of what a job holds, unless nothing was believed of its speed."""
        held = began.allocation
        if held is not None and (began.job.profile, gpu_type.name) in self._measured:
            self._report("rate", began.held_s, began.job, held.option.rate, real)

    def _report(
        self,
        what: Literal["size", "rate"],
        time_s: float,
        job: Job,
        believed: float,
        real: float,
        share: float | None = None,
    ) -> None:
        self.forecasts.append(
            Forecast(
                what=what, time_s=time_s, job=job.id, believed=believed, real=real, share=share
            )
        )

    def begin(self, job: Job, noise: NoiseScale | None) -> None:
        """Learn the gradient noise of a job that has just begun."""
        if noise is not None:
            self._began[job.profile] = noise

    def believe(self, round: Round) -> Round:
        """Return the round as it is believed to be; estimates that it holds stay."""
        left = self._sizes(round) if self._predicted is None else self._told(round)
        profiles = round.profiles
        lowest = {gpu_type.name: min(gpu_type.clocks) for gpu_type in round.cluster.gpu_types}

        known = {name for name, each in profiles.items() if not self._speeds or _is_known(each)}

        def state_of(state: JobState) -> JobState:
            job = state.job
            most = job.max_gpus or job.gpus
            if job.profile not in known:
                held = 0 if state.allocation is None else state.allocation.option.gpus
                most = max(job.gpus, held, min(most, self._most_gpus(round, job)))
            return self._state(state, job.estimate or left.get(job.id), most)

        return replace(
            round,
            profiles=self._shown_profiles(round, lowest) if self._speeds else profiles,
            waiting=tuple(map(state_of, round.waiting)),
            running=tuple(map(state_of, round.running)),
        )

    def _shown_profiles(self, round: Round, lowest: Mapping[str, float]) -> dict[str, Profile]:
        """Return the profiles as they are believed; the same object as long as they are."""
        found = {name: self._profile(p, lowest) for name, p in round.profiles.items()}
        if found.keys() != self._last.keys() or any(found[n] is not self._last[n] for n in found):
            self._last = found
        return self._last

    def _state(self, state: JobState, estimate: Estimate | None, most: int) -> JobState:
        """Return a job as it is believed; the same object as long as nothing changes."""
        job = state.job
        noise = state.noise if state.started else self._began.get(job.profile)
        before = self._shown.get(job.id)
        if before is not None and before.goes_on(state, estimate, most, noise):
            return before.shown
        shown = replace(state, job=replace(job, estimate=estimate, max_gpus=most), noise=noise)
        self._shown[job.id] = Shown(shown, state, estimate, most, noise)
        return shown

    def _most_gpus(self, round: Round, job: Job) -> int:
        """Return the most GPUs that a job may grow to, beyond what its user asked for.

        Twice the most that were measured, or less: what a pool's ladder has.
        """
        most = 0
        for shape in pool_shapes(round.cluster):
            known = self._measured.get((job.profile, shape.pool.gpu_type.name))
            if known is not None:
                step = bisect_right(shape.ladder, 2 * known.most_gpus)
                most = max((most, *shape.ladder[:step]))
        return most

    def _profile(self, profile: Profile, lowest: Mapping[str, float]) -> Profile:
        """Return a profile with the speeds that are believed, and the most that it may draw.

        `lowest` is the lowest clock of GPU types, by name.
        """
        if any(isinstance(model, Rated) for model in profile.throughput.values()):
            return profile  # as handed over last
        found = self._profiles.get(profile.name)
        if found is None:
            throughput = {
                name: model
                if isinstance(model, Rigid | Rated)
                else believed_model(model, carried(self._measured, profile.name, name))
                for name, model in profile.throughput.items()
            }
            power = {n: _computing(c, lowest.get(n, 1.0)) for n, c in profile.power.items()}
            found = replace(profile, throughput=throughput, power=power)
            self._profiles[profile.name] = found
        return found

    def _told(self, round: Round) -> dict[str, Estimate]:
        assert self._predicted is not None
        for job, told in self._predicted.submit(round):
            self._first[job] = First.of(round.now_s, 0.0, told)
        return self._predicted.estimates(round)

    def _levels(self, job: Job) -> Level:
        """Return what jobs like a job share with it, the broadest first."""
        return self._alike(job), job.user, job.gpus

    def _sizes(self, round: Round) -> dict[str, Estimate]:
        """Return what is believed of the sizes of live jobs."""
        alike: dict[str, list[JobState]] = {}
        for state in round.jobs:
            alike.setdefault(self._alike(state.job), []).append(state)
        found: dict[str, Estimate] = {}
        variance = pooled(self._within.values())
        for application, states in alike.items():
            if all(state.job.estimate is not None for state in states):
                continue
            past = self._complete.get(application, ())
            done = [state.done_at(round.now_s) for state in states]
            levels = [*(level for level, _ in past), *(self._levels(state.job) for state in states)]
            number: dict[object, int] = {}
            codes = np.array([[number.setdefault(x, len(number)) for x in row] for row in levels])
            work = np.array([*(work for _, work in past), *done])
            complete = np.arange(len(work)) < len(past)
            known: dict[Level, Sizes | None] = {}
            for k, (state, so_far) in enumerate(zip(states, done, strict=True), len(past)):
                if levels[k] not in known:
                    shared = np.logical_and.accumulate(codes == codes[k], axis=1)
                    known[levels[k]] = sizes(work, complete, likeness(shared, complete), variance)
                of = known[levels[k]]
                if of is not None:
                    mean, sd = of.left(so_far)
                    if state.job.id not in self._first:
                        self._first[state.job.id] = First.of(round.now_s, so_far, of)
                    found[state.job.id] = Estimate(work=so_far + mean, sd=sd)
        return found


def _within(known: Iterable[tuple[Level, float]]) -> tuple[float, int]:
    return within([work for _, work in known])


def _is_known(profile: Profile) -> bool:
    """Return whether the speed is known as it stands: rigid jobs, and rates handed over."""
    return any(isinstance(each, Rigid | Rated) for each in profile.throughput.values())


def _computing(curve: PowerCurve, lowest: float) -> PowerCurve:
    more_w = max(0.0, (curve.sync_w or 0.0) - float(gpu_power_w(curve, lowest)))
    return replace(curve, a_w=curve.a_w + more_w, sync_w=None)
