"""The log of past trainings that ONES's predictor is first trained on.

The artifact ships 590 rows of 20 jobs (traces/job_history.csv). They are not in our data, so as
many jobs are made here: those of the ONES workload with a seed of their own, each trained alone at
its base batch, its losses by the same learning-curve model as those of the jobs to come.
"""

from functools import lru_cache

import numpy as np

from ronda.formulations.models.learning import logged
from ronda.formulations.prediction.progress import finished_rows
from ronda.instances.arrays import Floats

JOBS = 20
SEED = 590
"""Of the history; no instance that `ronda` packages is made with it."""


@lru_cache(maxsize=1)
def history() -> tuple[Floats, Floats]:
    """Return features (N, 5) and progress (N,) after each epoch but the last of the past jobs."""
    from ronda.instances.traces.ones import ones_workload  # pandas comes with it

    features, progress = [], []
    for job in ones_workload(JOBS, SEED).jobs:
        truth = job.truth
        assert truth is not None
        assert truth.learning is not None
        assert job.epoch is not None
        epochs = round(truth.work / job.epoch)
        logs = [logged(truth.learning, e, e / epochs) for e in range(1, epochs + 1)]
        rows, shares = finished_rows(
            job.epoch,
            truth.learning.initial_loss,
            [log.loss for log in logs],
            [log.accuracy for log in logs],
        )
        features.append(rows)
        progress.append(shares)
    return np.concatenate(features), np.concatenate(progress)
