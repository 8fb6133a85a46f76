"""Learning curves, the logs of trainings, and sweeps, which judge trials by their logs.

A sweep is a search for hyper-parameters whose trials are jobs.
"""

from ronda.instances.base import Count, Index, NonNegative, Positive, Record, Share


class LearningCurve(Record, frozen=True, kw_only=True):
    """The development of a training's loss and accuracy up to its last epoch.

    At the share p of the job's work, with ``g`` falling from 1 to 0::

        g(p) = (1 / (1 + s p) - 1 / (1 + s)) / (1 - 1 / (1 + s))
        loss     = final_loss + (initial_loss - final_loss) g(p)
        accuracy = final_accuracy (1 - g(p))

    each times ``1 + noise z`` with a standard normal z that the seed and the epoch determine. Loss
    as ``1 / (b0 k + b1) + b2`` after k steps is the form that Optimus (EuroSys 2018) fits.

    Attributes
    ----------
    initial_loss, final_loss
        Loss before the first epoch and after the last one.
    final_accuracy
        Accuracy after the last epoch.
    steepness
        s, which is larger if more of the development comes early.
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
    """The log of a job's training so far.

    Attributes
    ----------
    epochs
        Evaluations so far: one each time that the job has done another `Job.epoch` of work.
    initial_loss
        Loss before the first epoch.
    loss
        Loss at the last evaluation; None if it has diverged.
    accuracy
        Accuracy at the last evaluation; 0 where only losses are logged.
    losses
        The loss at every evaluation so far, where only losses are logged.
    """

    epochs: Count
    initial_loss: Positive
    loss: NonNegative | None
    accuracy: NonNegative = 0.0
    losses: Losses = ()


class Sweep(Record, frozen=True, kw_only=True):
    """A search for the hyper-parameters of least loss; its trials are jobs that name it.

    Attributes
    ----------
    reports
        Number of reports of a trial that runs to its end, one per `Job.epoch` of work.
    deadline_s
        Time by which the search should be over, in seconds from the instance's start.
    """

    reports: Count
    deadline_s: NonNegative | None = None


class SweepState(Record, frozen=True, kw_only=True):
    """A sweep in a round.

    Attributes
    ----------
    sweep
        The sweep as its user described it.
    ended
        The logs of trials that have ended, complete or not, by job.
    """

    sweep: Sweep
    ended: dict[str, TrainingLog] = {}
