"""ONES's online-trained predictor: kept as weights, retrained as finished jobs come in.

The artifact first trains it on 590 rows of 20 jobs (traces/job_history.csv), not in our data. The
packaged ``ones-history`` stands in: 20 jobs of the ONES workload, each trained alone at its base
batch, its losses by the same learning-curve model as those of the jobs to come.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from ronda.formulations.clock import Deadline, OutOfTimeError, ending
from ronda.formulations.models.learning import logged
from ronda.formulations.prediction import Network, ProgressPredictor, finished_rows
from ronda.instances.arrays import Floats
from ronda.instances.files.catalogue import load
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.learning import LearningCurve
from ronda.solvers.ones.memory import Memory

JOBS = 20
"""Past jobs of ``ones-history``."""

SEED = 0
"""Of every training, as in the artifact's configuration."""

TRAINING = 0.8
"""Share of the time left that a training may take beside the last one, which serves otherwise."""


def predictor(
    memory: Memory, kept: dict[str, Any], refit: float, deadline: Deadline, *, artifact: bool
) -> tuple[ProgressPredictor, dict[str, Any]]:
    """Return the predictor for this tick, and what to keep of it for the next ones.

    It is retrained from scratch once the share `refit` of jobs (0: any) has been added since. If
    there is no time for that the last one serves until the next share has.
    """
    if kept:
        more = memory.ended - kept["ended"]
        if more < max(1.0, refit * (JOBS + kept["ended"])):
            return _known(kept, artifact), kept
    try:
        with ending(deadline.share(TRAINING if kept else 1.0).end):
            made = _first(artifact) if not memory.past else _fit(memory, artifact)
    except OutOfTimeError:
        if not kept:
            raise
        return _known(kept, artifact), kept | {"ended": memory.ended}
    network = made.network
    return made, {
        "ended": memory.ended,
        "weights": network.weights.tolist(),
        "shift": network.shift.tolist(),
        "scale": network.scale.tolist(),
    }


def _known(kept: dict[str, Any], artifact: bool) -> ProgressPredictor:
    """Return the predictor that was kept."""
    weights = (np.array(kept[name]) for name in ("weights", "shift", "scale"))
    return ProgressPredictor(Network(*weights), artifact)


@lru_cache(maxsize=2)
def _first(artifact: bool) -> ProgressPredictor:
    """Return the predictor that knows the history alone."""
    return _fit(Memory(), artifact)


def _fit(memory: Memory, artifact: bool) -> ProgressPredictor:
    """Train on the history and all jobs that ended since."""
    features, progress = history()
    logs = memory.past.values()
    rows = [features, *(np.array(log["rows"], dtype=float) for log in logs)]
    done = [progress, *(np.array(log["done"], dtype=float) for log in logs)]
    return ProgressPredictor.fit(
        np.concatenate(rows), np.concatenate(done), seed=SEED, artifact=artifact
    )


@lru_cache(maxsize=1)
def history() -> tuple[Floats, Floats]:
    """Return features (N, 5) and progress (N,) after each epoch but the last of the past jobs."""
    past = load("ones-history")
    assert isinstance(past, Instance)
    features, progress = zip(*(_log(job) for job in past.jobs), strict=True)
    return np.concatenate(features), np.concatenate(progress)


def _log(job: Job) -> tuple[Floats, Floats]:
    """Return what the whole log of a job teaches."""
    truth = job.truth
    assert truth is not None
    assert isinstance(truth.learning, LearningCurve)  # as the recipe makes them
    assert job.epoch is not None
    epochs = round(truth.work / job.epoch)
    logs = [logged(truth.learning, e, e / epochs) for e in range(1, epochs + 1)]
    losses = [log.loss for log in logs if log.loss is not None]
    accuracies = [log.accuracy for log in logs]
    return finished_rows(job.epoch, truth.learning.initial_loss, losses, accuracies)
