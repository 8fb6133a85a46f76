"""Predictions of job sizes as in Helios' QSSF service, as distributions that learn.

A regression by boosted trees (LightGBM) gives P, the typical size of a job with given `features`.
The predicted sizes are P times the errors of earlier predictions of the same decade, for jobs to
which the trees were not fitted (split conformal prediction: Vovk, Gammerman and Shafer 2005). The
rolling estimate has the weight `alpha` in the mixture of both, so the mean is ::

    alpha P_rolling + (1 - alpha) P_model

as in Helios (Hu et al., SC'21; alpha = 0.1). Every completion changes the errors, the rolling
estimate and the features of later jobs. The trees stay as they were trained.

**The rolling estimate**, as in the authors' artifact, is the mean size of the last similar jobs.
Similar jobs have the job's name, or else the most similar names. Among these, jobs of the same
user, and then jobs on the same number of GPUs, are preferred if there are any. A job with a new
name is similar to all jobs of its user, and a job of a new user to all jobs. Where traces have no
users, jobs on the same number of GPUs replace those of the user (our own rule).
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from difflib import get_close_matches
from math import floor, log10
from typing import TYPE_CHECKING

import numpy as np

from ronda.formulations.prediction.features import NEAR, Features
from ronda.formulations.prediction.sizes import Sizes
from ronda.instances.base import Floats
from ronda.instances.job import Job
from ronda.instances.models.fits import Past, Predictor

if TYPE_CHECKING:
    import lightgbm

LAST = 200
"""The most jobs to remember per user, per name and in total, and the most errors per decade."""

POINTS = 20
"""The most sizes in one part of a distribution."""


class Service:
    """A service that predicts the sizes of jobs, from a predictor and jobs that have ended since.

    Submissions and completions must be reported in order.
    """

    def __init__(self, predictor: Predictor) -> None:
        self.alpha = float(predictor.alpha)
        self._trees = booster(predictor.model)
        self.features = Features(predictor.users, predictor.partitions, predictor.names)
        self.rolling = Rolling()
        self.errors = Errors(predictor.errors)
        self._typical: dict[str, float] = {}
        self._longest = 0.0
        for past in predictor.past:
            self._learn(remembered(past), past.work)

    def submit(self, jobs: Sequence[Job], now_s: float) -> list[Sizes | None]:
        """Return the predicted sizes of jobs that are submitted now."""
        rows = np.array([self.features.submit(job, now_s) for job in jobs])
        typical = np.exp(predicted(self._trees, rows)).tolist()
        self._typical.update(zip((job.id for job in jobs), typical, strict=True))
        return [self._sizes(job, p) for job, p in zip(jobs, typical, strict=True)]

    def forget(self, job: Job) -> None:
        """Ignore the error of a job to which the trees were fitted."""
        self._typical.pop(job.id, None)

    def end(self, job: Job, work: float | None) -> None:
        """Record that a job has ended with its true `work`, or None if it never completed."""
        typical = self._typical.pop(job.id, None)
        if work is None:
            return
        if typical is not None:
            self.errors.add(typical, work)
        self._learn(job, work)

    def _learn(self, job: Job, work: float) -> None:
        self.features.end(job, work)
        self.rolling.end(job, work)
        self._longest = max(self._longest, work)

    def _sizes(self, job: Job, typical: float) -> Sizes | None:
        """Return the mixture of both predictions, cut at the largest size seen."""
        parts = [(1.0 - self.alpha, typical * self.errors.near(typical))]
        past = self.rolling.like(job)
        if past:
            parts.append((self.alpha, np.array(past)))
        parts = [(weight, points) for weight, points in parts if weight and len(points)]
        if not parts:
            return None
        thin = [thinned(points) for _, points in parts]
        work = np.concatenate([points for points, _ in thin])
        mass = np.concatenate([w * m for (w, _), (_, m) in zip(parts, thin, strict=True)])
        if self._longest:
            work = np.minimum(work, self._longest)
        order = np.argsort(work, kind="stable")
        return Sizes(work[order], mass[order] / mass.sum())


class Errors:
    """The ratios of true to predicted sizes, grouped by the decade of the prediction."""

    def __init__(self, known: dict[str, tuple[float, ...]]) -> None:
        self._by = {int(decade): deque(ratios, LAST) for decade, ratios in known.items()}

    def add(self, typical: float, work: float) -> None:
        """Record the error of a prediction."""
        self._by.setdefault(_decade(typical), deque(maxlen=LAST)).append(work / typical)

    def near(self, typical: float) -> Floats:
        """Return the errors of the nearest decade with errors."""
        if not self._by:
            return np.ones(1)
        decade = _decade(typical)
        return np.array(self._by[min(self._by, key=lambda each: (abs(each - decade), each))])

    def known(self) -> dict[str, tuple[float, ...]]:
        """Return the errors per decade, to be stored in a file."""
        return {str(decade): tuple(self._by[decade]) for decade in sorted(self._by)}


def _decade(typical: float) -> int:
    return floor(log10(typical))


def thinned(points: Floats) -> tuple[Floats, Floats]:
    """Return at most `POINTS` means of neighbouring points, and the share of each."""
    count = len(points)
    first = np.arange(min(count, POINTS)) * count // min(count, POINTS)
    each = np.diff(first, append=count)
    return np.add.reduceat(np.sort(points), first) / each, each / count


def remembered(past: Past) -> Job:
    """Return a job that ended before the run, with its remembered features."""
    return Job(
        id="past",
        submit_s=0.0,
        profile="past",
        gpus=past.gpus,
        partition=past.partition,
        user=past.user,
        name=past.name,
    )


def booster(model: str) -> "lightgbm.Booster":
    """Return the trees that a text describes."""
    import lightgbm  # only predictors need it

    return lightgbm.Booster(model_str=model)


def predicted(trees: "lightgbm.Booster", rows: Floats) -> Floats:
    """Return the predicted log sizes of rows (J, F), shape (J,)."""
    return np.asarray(trees.predict(rows, num_threads=1), dtype=float)


Ended = tuple[str | None, int, float]
"""The user, GPUs and work of a complete job."""


class Rolling:
    """The last complete jobs, grouped by name and by user."""

    def __init__(self) -> None:
        self._all: deque[float] = deque(maxlen=LAST)
        self._of: dict[object, deque[float]] = {}
        self._named: OrderedDict[str, deque[Ended]] = OrderedDict()

    def end(self, job: Job, work: float) -> None:
        """Record a complete job."""
        self._all.append(work)
        self._of.setdefault(_whose(job), deque(maxlen=LAST)).append(work)
        if job.name is not None:
            past = job.user, job.gpus, work
            self._named.setdefault(job.name, deque(maxlen=LAST)).append(past)
            self._named.move_to_end(job.name)
            if len(self._named) > 300:
                self._named.popitem(last=False)

    def like(self, job: Job) -> list[float]:
        """Return the sizes of complete jobs similar to a job, none if no job is complete."""
        named = self._alike(job.name)
        if not named:
            return list(self._of.get(_whose(job), self._all))
        same = [past for past in named if past[0] == job.user] or named
        found = [past for past in same if past[1] == job.gpus] or same
        return [work for _, _, work in found]

    def _alike(self, name: str | None) -> Sequence[Ended]:
        if name is None:
            return ()
        if name in self._named:
            return self._named[name]
        near = get_close_matches(name, self._named, n=2, cutoff=NEAR)  # as in the artifact
        return [past for each in near for past in self._named[each]]


def _whose(job: Job) -> object:
    """Return the user of a job, or its number of GPUs if it has no user."""
    return job.user if job.user is not None else job.gpus
