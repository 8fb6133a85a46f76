"""A scheduler's beliefs about jobs: their sizes, speeds and gradient noise, from observations.

The scheduler observes submissions, progress, completions, and the step times and noise of jobs that
ran. It knows no truth and nothing from before the run. `ronda.formulations.prediction` has the
models.

* **Speeds** are learnt at both levels of knowledge, with one model per application and GPU type
  for all jobs. A job of an unmeasured application may have as many GPUs as its user requested, and
  other jobs up to twice the most GPUs that were measured, because growth gives information.
* **Sizes**, with ``history``, come from jobs of the same application; also of the same user; also
  with the same requested number of GPUs. Complete jobs give their size, live ones their progress.
  With ``none``, only live jobs count and no size is remembered. A `Predictor` replaces all this: it
  predicts a job's size at submission, and the belief changes only when the job outlives a part of
  the prediction (`ronda.horizon.predicted`).
* **Noise** of a job that has not run yet is the initial noise of the last job of its application;
  without such a job the noise is unknown, and the job keeps its batch.

Watts are the profiles' watts of computing GPUs. A GPU draws less while it synchronises, but that
time has to be learnt. So no plan draws more than it states.
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
"""The number of recent complete jobs that are remembered for each application."""

REPORTED = 100_000
"""The number of recent forecasts that are kept for a report."""

NEWS = 0.01
"""The relative error of a step time above which a model is fitted again."""

Level = tuple[str, str | None, int]


class Shown(NamedTuple):
    """The view of a job for policies, and the values from which it was made."""

    shown: JobState
    of: JobState
    estimate: Estimate | None
    most_gpus: int
    noise: NoiseScale | None

    def goes_on(
        self, of: JobState, estimate: Estimate | None, most: int, noise: NoiseScale | None
    ) -> bool:
        """Return whether the view of the job is still current."""
        same = self.of is of and self.noise is noise and self.most_gpus == most
        return same and (self.estimate is estimate or self.estimate == estimate)


class First(msgspec.Struct, frozen=True):
    """The first belief about a job's size: its time, the work done then, and the distribution."""

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
        """Keep the belief about a job that has done `done`."""
        return cls(time_s, done, sizes.work.tolist(), sizes.mass.tolist(), sizes.spread)


class SavedBeliefs(msgspec.Struct, frozen=True):
    """The contents of a `Beliefs` in a form that can be written; forecasts are left out."""

    complete: dict[str, list[tuple[Level, float]]]
    measured: list[tuple[tuple[str, str], list[tuple[Way, tuple[float, float, int]]]]]
    profiles: dict[str, Profile]
    began: dict[str, NoiseScale]
    first: dict[str, First]


class Beliefs:
    """The current beliefs; with `history`, sizes of complete jobs are remembered.

    Jobs for which `alike` returns the same value are of one kind, which users call an application.
    Without `speeds`, the speeds of the profiles are taken as known.
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
        """Return the learnt beliefs, without those of a predictor."""
        return SavedBeliefs(
            complete={name: list(known) for name, known in self._complete.items()},
            measured=[(where, list(m.ways.items())) for where, m in self._measured.items()],
            profiles=dict(self._profiles),
            began=dict(self._began),
            first=dict(self._first),
        )

    def restore(self, saved: SavedBeliefs) -> None:
        """Continue from saved beliefs."""
        self._complete = {n: deque(known, maxlen=REMEMBERED) for n, known in saved.complete.items()}
        self._within = {n: _within(known) for n, known in self._complete.items()}
        self._measured = {where: Measured(dict(ways)) for where, ways in saved.measured}
        self._profiles, self._began = dict(saved.profiles), dict(saved.began)
        self._first = dict(saved.first)

    def end(self, job: Job, work: float | None) -> None:
        """Record that a job is gone, and its `work`; None if it never completed."""
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
        """Record the time of a step.

        Parameters
        ----------
        where
            Names of the job's profile and of the GPU type.
        way
            The configuration in which the job ran.
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
                self._profiles.clear()  # a measurement on a GPU type affects all applications
            else:
                self._profiles.pop(where[0], None)

    def remodel(self, profile: str) -> None:
        """Drop the fitted model of a profile because the profile changed; measurements stay."""
        self._profiles.pop(profile, None)

    def judge(self, gpu_type: GpuType, began: JobState, real: float) -> None:
        """Report the `real` rate of a job's allocation, if there was a belief about its speed."""
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
        """Record the gradient noise of a job that has just begun."""
        if noise is not None:
            self._began[job.profile] = noise

    def believe(self, round: Round) -> Round:
        """Return the round according to the beliefs; estimates in the round stay."""
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
        """Return the believed profiles, as the same object while they do not change."""
        found = {name: self._profile(p, lowest) for name, p in round.profiles.items()}
        if found.keys() != self._last.keys() or any(found[n] is not self._last[n] for n in found):
            self._last = found
        return self._last

    def _state(self, state: JobState, estimate: Estimate | None, most: int) -> JobState:
        """Return the believed state of a job, as the same object while it does not change."""
        job = state.job
        noise = state.noise if state.started else self._began.get(job.profile)
        before = self._shown.get(job.id)
        if before is not None and before.goes_on(state, estimate, most, noise):
            return before.shown
        shown = replace(state, job=replace(job, estimate=estimate, max_gpus=most), noise=noise)
        self._shown[job.id] = Shown(shown, state, estimate, most, noise)
        return shown

    def _most_gpus(self, round: Round, job: Job) -> int:
        """Return the most GPUs to which a job may grow beyond its user's request.

        The result is the largest entry of a pool's ladder up to twice the most that were measured.
        """
        most = 0
        for shape in pool_shapes(round.cluster):
            known = self._measured.get((job.profile, shape.pool.gpu_type.name))
            if known is not None:
                step = bisect_right(shape.ladder, 2 * known.most_gpus)
                most = max((most, *shape.ladder[:step]))
        return most

    def _profile(self, profile: Profile, lowest: Mapping[str, float]) -> Profile:
        """Return a profile with the believed speeds, and the most that it may draw.

        `lowest` is the lowest clock of each GPU type, by name.
        """
        if any(isinstance(model, Rated) for model in profile.throughput.values()):
            return profile  # with the rates that were handed over last
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
        """Return the properties by which jobs are alike, from the broadest to the narrowest."""
        return self._alike(job), job.user, job.gpus

    def _sizes(self, round: Round) -> dict[str, Estimate]:
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
    """Return whether the profile's speed is known: for rigid jobs, and for given rates."""
    return any(isinstance(each, Rigid | Rated) for each in profile.throughput.values())


def _computing(curve: PowerCurve, lowest: float) -> PowerCurve:
    more_w = max(0.0, (curve.sync_w or 0.0) - float(gpu_power_w(curve, lowest)))
    return replace(curve, a_w=curve.a_w + more_w, sync_w=None)
