"""Sizes of live jobs from a trained predictor.

A job's distribution is predicted once, at submission. The belief then changes only as the job
outlives parts of it: the expected size stays until the job has done as much as the next predicted
size. A job that has outlived all sizes is expected to be twice as large as the work it has done.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from ronda.formulations.prediction.qssf_service import Service
from ronda.formulations.prediction.sizes import Sizes
from ronda.instances.base import Floats
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.models.fits import Predictor
from ronda.instances.round import Round

QUANTILES = 10
"""The number of quantiles in an estimate."""


class Tails:
    """The expected size of a job that has outlived the first k predicted sizes, for each k."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        work, mass = sizes.work, sizes.mass
        tail = _from_behind(mass)
        self._mean = _from_behind(mass * work) / tail
        self._sd = np.sqrt(np.maximum(0.0, _from_behind(mass * work**2) / tail - self._mean**2))
        middle = (np.arange(QUANTILES) + 0.5) / QUANTILES
        within = np.cumsum(mass)
        places = np.searchsorted(within, (within - mass)[:, None] + tail[:, None] * middle - 1e-12)
        self._quantiles = work[np.minimum(places, len(work) - 1)]

    def after(self, done: float) -> tuple[float, Estimate]:
        """Return the next size and the estimate until that size for a job that has done `done`."""
        k = int(np.searchsorted(self.sizes.work, done, "right"))
        if k == len(self.sizes.work):
            return 2.0 * done, Estimate(work=2.0 * done, quantiles=(2.0 * done,))
        mean, sd = float(self._mean[k]), float(self._sd[k])
        quantiles = tuple(self._quantiles[k].tolist())
        return float(self.sizes.work[k]), Estimate(work=mean, sd=sd, quantiles=quantiles)


def _from_behind(array: Floats) -> Floats:
    return np.cumsum(array[::-1])[::-1]


class TimedEstimate(NamedTuple):
    """A distribution, and its estimate, which holds until the job has done `until`.

    While `of` is the state of the job, that is not before `until_s`.
    """

    tails: Tails
    until: float
    estimate: Estimate
    of: JobState | None = None
    until_s: float = -inf

    def at(self, now_s: float, state: JobState) -> "TimedEstimate":
        """Return the estimate of a job at `now_s`."""
        done = state.done_at(now_s)
        until, estimate = self.until, self.estimate
        if done >= until:
            until, estimate = self.tails.after(done)
        until_s = inf
        if state.allocation is not None:
            until_s = max(now_s, state.since_s) + (until - done) / state.allocation.option.rate
        return TimedEstimate(self.tails, until, estimate, state, until_s)


class Predicted:
    """The predictions for live jobs, and what the predictor learns when jobs are gone."""

    def __init__(self, predictor: Predictor) -> None:
        self._service = Service(predictor)
        self._told: dict[str, TimedEstimate | None] = {}

    def submit(self, round: Round) -> list[tuple[str, Sizes]]:
        """Register new jobs and return the predicted distributions of their sizes."""
        new = [s.job for s in round.waiting if s.job.id not in self._told]
        if not new:
            return []
        found = []
        for job, sizes in zip(new, self._service.submit(new, round.now_s), strict=True):
            self._told[job.id] = told = None if sizes is None else first(sizes)
            if told is not None:
                found.append((job.id, told.tails.sizes))
        return found

    def end(self, job: Job, work: float | None) -> None:
        """Record that a job is gone, and its `work`; None if it never completed."""
        self._told.pop(job.id, None)
        self._service.end(job, work)

    def estimates(self, round: Round) -> dict[str, Estimate]:
        """Return the current estimates of live jobs."""
        found, now_s = {}, round.now_s
        for state in round.jobs:
            job = state.job.id
            told = self._told[job]
            if told is None:
                continue
            if told.of is not state or now_s >= told.until_s:
                told = self._told[job] = told.at(now_s, state)
            found[job] = told.estimate
        return found


def first(sizes: Sizes) -> TimedEstimate:
    """Return the estimate of a job before it has done any work."""
    tails = Tails(sizes)
    return TimedEstimate(tails, *tails.after(0.0))
