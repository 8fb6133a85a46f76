"""The training log of a job: loss and accuracy after each epoch, from its learning curve.

The curve is a `ronda.instances.learning.LearningCurve` or the logged losses of a training. It
belongs to the job's truth, so only the driver evaluates it, and only for completed epochs, as in a
real log. A job is evaluated whenever it has done the work of another epoch, in samples at the base
batch. (A pass over the data with large batches does less work.)
"""

from math import floor

import numpy as np

from ronda.instances.learning import LearningCurve, Losses, TrainingLog
from ronda.instances.violation import ROUNDING


def epochs_over(done: float, epoch: float) -> int:
    """Return the number of completed epochs after the work `done`."""
    return floor(done / epoch + ROUNDING)


def next_end(done: float, epoch: float) -> float:
    """Return the work at which the current epoch ends."""
    return (epochs_over(done, epoch) + 1) * epoch


def to_come(curve: LearningCurve, share: float) -> float:
    """Return g(p), the remaining share of the learning curve: 1 at p = 0 and 0 at p = 1."""
    end = 1.0 / (1.0 + curve.steepness)
    return (1.0 / (1.0 + curve.steepness * min(share, 1.0)) - end) / (1.0 - end)


def training_log(curve: LearningCurve | Losses, epochs: int, share: float) -> TrainingLog:
    """Return the log after `epochs` epochs; their number also selects the noise.

    `share` is the fraction of the job's work that is done after the last of them.
    """
    if isinstance(curve, tuple):
        assert curve[0] is not None  # instances are validated
        losses = curve[1 : epochs + 1]
        return TrainingLog(epochs=epochs, initial_loss=curve[0], loss=curve[epochs], losses=losses)
    left = to_come(curve, share)
    noise = 1.0 + curve.noise * np.random.default_rng([curve.seed, epochs]).standard_normal(2)
    loss = curve.final_loss + (curve.initial_loss - curve.final_loss) * left
    return TrainingLog(
        epochs=epochs,
        initial_loss=curve.initial_loss,
        loss=max(0.0, loss * float(noise[0])),
        accuracy=min(1.0, max(0.0, curve.final_accuracy * (1.0 - left) * float(noise[1]))),
    )
