"""ONES's online-trained predictor: kept as weights, retrained as finished jobs come in."""

from functools import lru_cache
from typing import Any

import numpy as np

from ronda.formulations.prediction.history import JOBS, history
from ronda.formulations.prediction.progress import ProgressPredictor
from ronda.formulations.prediction.training import Network, Training
from ronda.solvers.ones.memory import Memory

SEED = 0
"""Of every training, as in the artifact's configuration."""


def predictor(
    memory: Memory, kept: dict[str, Any], refit: float, *, artifact: bool
) -> tuple[ProgressPredictor, dict[str, Any]]:
    """Return the predictor for this tick, and what to keep of it for the next ones.

    Parameters
    ----------
    memory
        With the logs of jobs that ended.
    kept
        What was kept of the last one; empty: there is none yet.
    refit
        It is retrained, from scratch, once this share of jobs has been added to those that it
        was trained on; 0: whenever a job has ended, as in the artifact.
    artifact
        With the artifact's oddities.
    """
    if kept:
        more = memory.ended - kept["ended"]
        if more < max(1.0, refit * (JOBS + kept["ended"])):
            weights = (np.array(kept[name]) for name in ("weights", "shift", "scale"))
            return ProgressPredictor(Network(*weights), artifact), kept
    made = _first(artifact) if not memory.past else _fit(memory, artifact)
    network = made.network
    return made, {
        "ended": memory.ended,
        "weights": network.weights.tolist(),
        "shift": network.shift.tolist(),
        "scale": network.scale.tolist(),
    }


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
    training = Training(artifact=artifact)
    return ProgressPredictor.fit(
        np.concatenate(rows), np.concatenate(done), seed=SEED, training=training
    )
