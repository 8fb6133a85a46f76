"""Learning curves, training logs, and sweeps, which judge trials by their logs.

A sweep is a hyper-parameter search whose trials are jobs.
"""

from ronda.instances.base import Count, Index, NonNegative, Positive, Record, Share


class LearningCurve(Record, frozen=True, kw_only=True):
    """The loss and accuracy of a training up to its last epoch.

    At the fraction p of the job's work, both follow ``g``, which falls from 1 to 0::

        g(p) = (1 / (1 + s p) - 1 / (1 + s)) / (1 - 1 / (1 + s))
        loss     = final_loss + (initial_loss - final_loss) g(p)
        accuracy = final_accuracy (1 - g(p))

    Both are multiplied by ``1 + noise z`` with a standard normal z that the seed and the epoch
    determine. Optimus (EuroSys 2018) fits the same form of loss, ``1 / (b0 k + b1) + b2`` after k
    steps.

    Attributes
    ----------
    initial_loss, final_loss
        Loss before the first epoch and after the last one.
    final_accuracy
        Accuracy after the last epoch.
    steepness
        The parameter s, which is larger the earlier the loss falls.
    noise
        Relative standard deviation of logged values.
    seed
        Seed of the noise.
    """

    initial_loss: Positive
    final_loss: NonNegative
    final_accuracy: Share
    steepness: Positive
    noise: NonNegative = 0.0
    seed: Index = 0


Losses = tuple[NonNegative | None, ...]
"""The logged losses of a training before its first epoch and after each; None if it diverged."""


class TrainingLog(Record, frozen=True, kw_only=True):
    """The training log of a job so far.

    Attributes
    ----------
    epochs
        Number of evaluations so far, one per `Job.epoch` of work.
    initial_loss
        Loss before the first epoch.
    loss
        Loss at the last evaluation; None if it has diverged.
    accuracy
        Accuracy at the last evaluation; 0 where only losses are logged.
    losses
        Losses at all evaluations so far, where only losses are logged.
    """

    epochs: Count
    initial_loss: Positive
    loss: NonNegative | None
    accuracy: NonNegative = 0.0
    losses: Losses = ()


class Sweep(Record, frozen=True, kw_only=True):
    """A search for the hyper-parameters with the least loss, whose trials are jobs that name it.

    Attributes
    ----------
    reports
        Number of reports of a complete trial, one per `Job.epoch` of work.
    deadline_s
        Time by which the search should finish, in seconds from the instance's start.
    """

    reports: Count
    deadline_s: NonNegative | None = None


class SweepState(Record, frozen=True, kw_only=True):
    """The state of a sweep in a round.

    Attributes
    ----------
    sweep
        The sweep as its user described it.
    ended
        Logs of the ended trials, complete or not, by job.
    """

    sweep: Sweep
    ended: dict[str, TrainingLog] = {}
