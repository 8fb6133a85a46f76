"""The online training of the predictor of progress, which is repeated as jobs finish.

The artifact first trains it on 590 rows of 20 jobs (traces/job_history.csv), which we do not have.
The packaged ``ones-history`` takes their place: 20 jobs of the ONES workload, each trained alone at
its base batch, with losses from the same learning-curve model as future jobs.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from msgspec.structs import replace

from ronda.instances.base import Floats
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.files.packaged import load
from ronda.instances.instance import Instance
from ronda.instances.learning import LearningCurve, TrainingLog
from ronda.instances.models.learning import training_log
from ronda.systems.ones.memory import OnesMemory, Trained
from ronda.systems.ones.progress import ProgressPredictor, features


def trained(memory: OnesMemory, refit: float, deadline: Deadline) -> Trained:
    """Return the trained predictor for this tick and the next ones.

    The predictor is retrained from scratch once the number of training jobs (including the 20 of
    ``ones-history``) has grown by the share `refit`; with 0 whenever a job ends. If there is no
    time, the last predictor is kept until the jobs have grown by another share.
    """
    kept = memory.predictor
    if kept and memory.ended - kept.ended < max(1.0, refit * (20 + kept.ended)):
        return kept
    try:
        # If an earlier predictor exists, training must leave time for the tick itself.
        with ending(deadline.share(0.8 if kept else 1.0).end):
            rows, progress = history()
            rows = np.array([*rows, *(row for log in memory.past.values() for row in log.rows)])
            done = [share for log in memory.past.values() for share in log.done]
            made = ProgressPredictor.fit(rows, np.append(progress, done), seed=0)
    except OutOfTimeError:
        if not kept:
            raise
        return replace(kept, ended=memory.ended)
    parts = (getattr(made, name).tolist() for name in ("weights", "shift", "scale"))
    return Trained(memory.ended, *parts)


def predictor(kept: Trained) -> ProgressPredictor:
    """Return the predictor that a training has produced."""
    return ProgressPredictor(*map(np.array, (kept.weights, kept.shift, kept.scale)))


@lru_cache(maxsize=1)
def history() -> tuple[Floats, Floats]:
    """Return features (N, 5) and progress (N,) of past jobs after each epoch but the last."""
    past = load("ones-history")
    assert isinstance(past, Instance)
    rows, progress = list[list[float]](), list[float]()
    for job in past.jobs:
        truth = job.truth
        assert truth is not None
        assert isinstance(truth.learning, LearningCurve)  # the recipe makes such jobs
        assert job.epoch is not None
        epochs = round(truth.work / job.epoch)
        logs = [training_log(truth.learning, e, e / epochs) for e in range(1, epochs + 1)]
        more, done = finished_rows(job.epoch, logs)
        rows += more
        progress += done
    return np.array(rows), np.array(progress)


def finished_rows(
    dataset_size: float, logs: Sequence[TrainingLog]
) -> tuple[list[list[float]], list[float]]:
    """Return the features and the progress (N,) of a finished job after each epoch in its logs.

    There is one row per epoch except the last, whose progress is 1 (the artifact also omits it).
    """
    rows = [
        features(dataset_size, log.initial_loss, log.epochs, log.loss, log.accuracy)
        for log in logs[:-1]
        if log.loss is not None
    ]
    return rows, [log.epochs / len(logs) for log in logs[:-1]]
