"""The log of past trainings that ONES's predictor is first trained on.

The artifact ships 590 rows of 20 jobs (traces/job_history.csv), which are not in our data. The
packaged instance ``ones-history`` stands in: 20 jobs of the ONES workload, each trained alone at
its base batch, its losses by the same learning-curve model as those of the jobs to come.
"""

from functools import lru_cache

import numpy as np

from ronda.formulations.models.learning import logged
from ronda.formulations.prediction.progress import finished_rows
from ronda.instances.arrays import Floats
from ronda.instances.files.catalogue import load
from ronda.instances.instance import Instance
from ronda.instances.job import Job

JOBS = 20
"""Past jobs."""


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
    assert truth.learning is not None
    assert job.epoch is not None
    epochs = round(truth.work / job.epoch)
    logs = [logged(truth.learning, e, e / epochs) for e in range(1, epochs + 1)]
    losses, accuracies = [log.loss for log in logs], [log.accuracy for log in logs]
    return finished_rows(job.epoch, truth.learning.initial_loss, losses, accuracies)
