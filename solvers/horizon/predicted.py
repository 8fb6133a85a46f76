"""Sizes as a trained predictor tells them, while jobs are live.

A job's distribution is told once, as it is submitted. What changes then is that the job outlives
parts of it: the expected size stays until the job has done as much as the next size that was told.
One that has outlived all sizes is expected to be twice as large as what it has done.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from ronda.formulations.prediction.service import Service
from ronda.formulations.prediction.sizes import Sizes
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.predictor import Predictor
from ronda.instances.round import Round

QUANTILES = 10
"""How many an estimate tells."""


class Told(NamedTuple):
    """A distribution, and the estimate that follows from it until so much work is done.

    That is not before `until_s`, as long as `of` is the state of the job.
    """

    sizes: Sizes
    until: float
    estimate: Estimate
    of: JobState | None = None
    until_s: float = -inf

    def at(self, now_s: float, state: JobState) -> "Told":
        """Return what is told of a job by now."""
        done = state.done_at(now_s)
        told = self if done < self.until else self._outlived(done)
        until_s = inf
        if state.allocation is not None:
            until_s = max(now_s, state.since_s) + (told.until - done) / state.allocation.option.rate
        return told._replace(of=state, until_s=until_s)

    def _outlived(self, done: float) -> "Told":
        left = self.sizes.left(done)
        estimate = expected(left, done)
        return Told(self.sizes, done + float(left.work[0]), estimate)


class Predicted:
    """What a predictor tells of live jobs, and what it learns when they are gone."""

    def __init__(self, predictor: Predictor) -> None:
        self._service = Service(predictor)
        self._told: dict[str, Told | None] = {}

    def submit(self, round: Round) -> list[tuple[str, Sizes]]:
        """Learn of the jobs that are new; return what is told of their sizes."""
        new = [s.job for s in round.waiting if s.job.id not in self._told]
        if not new:
            return []
        found = []
        for job, sizes in zip(new, self._service.submit(new, round.now_s), strict=True):
            self._told[job.id] = told = None if sizes is None else first(sizes)
            if told is not None:
                found.append((job.id, told.sizes))
        return found

    def end(self, job: Job, work: float | None) -> None:
        """Learn that a job is gone, and how much `work` it was; None if it never completed."""
        self._told.pop(job.id, None)
        self._service.end(job, work)

    def estimates(self, round: Round) -> dict[str, Estimate]:
        """Return what is believed of live jobs by now."""
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


def first(sizes: Sizes) -> Told:
    """Return what is told of a job before it has done anything."""
    return Told(sizes, -inf, expected(sizes, 0.0))


def expected(left: Sizes, done: float) -> Estimate:
    """Return the estimate of a job that has done so much and has a distribution left."""
    middle = (np.arange(QUANTILES) + 0.5) / QUANTILES
    places = np.searchsorted(np.cumsum(left.mass), middle - 1e-12)
    points = done + left.work[np.minimum(places, len(left.work) - 1)]
    return Estimate(work=done + left.mean, sd=left.sd, quantiles=tuple(points.tolist()))
