"""Three slips of ONES's artifact, which ``ones(variant=artifact)`` brings back.

* The controller writes when a job was last scaled under one key and the scheduler reads another,
  which stays 0: two epochs altogether suffice to be scaled again.
* The predictor reads the raw size of the data set, though it learnt its logarithm.
* Its likelihood scores the b of every row against the a of every row of its batch.

All weights start from N(0, 1) on features as they are, so that the ReLU may be closed from the
start (then b stays 1).
"""

from typing import ClassVar, Self

import numpy as np
from numpy.random import Generator

from ronda.instances.arrays import Floats
from ronda.solvers.ones.memory import OnesMemory
from ronda.solvers.ones.progress import HIDDEN, ProgressPredictor

BATCH = 8
"""Rows in a step of the artifact's training."""


def forget_scaling(memory: OnesMemory) -> None:
    """Let jobs have been scaled at their start only."""
    for job_id in memory.jobs:
        memory.change(job_id, scaled=0)


class ArtifactPredictor(ProgressPredictor):
    """The network as the artifact trains and reads it."""

    iterations: ClassVar[int] = 3
    """Few: with Adam at rate 1e-4 the artifact's weights hardly leave their start either."""

    @classmethod
    def _start(cls, x: Floats, y: Floats, rng: Generator) -> Self:
        return cls(rng.standard_normal(7 * HIDDEN + 1), np.zeros(5), np.ones(5))

    @staticmethod
    def _scored_with(a: Floats, rng: Generator) -> Floats:
        others: Floats = a[rng.integers(len(a), size=(len(a), BATCH - 1))]
        return np.column_stack((a, others))

    def _seen(self, x: Floats) -> Floats:
        return np.column_stack((np.exp(x[:, 0]), x[:, 1:]))
