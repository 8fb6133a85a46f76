"""Sweeps: searches for hyper-parameters whose trials are jobs, judged by the losses they report."""

from ronda.instances.base import Count, NonNegative, Record
from ronda.instances.learning import TrainingLog


class Sweep(Record, frozen=True, kw_only=True):
    """A search for the hyper-parameters of least loss; its trials are jobs that name it.

    Attributes
    ----------
    reports
        Reports of a trial that runs to its end: one each time that it has done another
        `Job.epoch` of work.
    deadline_s
        When the search should be over, in seconds from the instance's start.
    """

    reports: Count
    deadline_s: NonNegative | None = None


class SweepState(Record, frozen=True, kw_only=True):
    """A sweep in a round.

    Attributes
    ----------
    sweep
        What its user said of it.
    ended
        What trials logged that have ended, complete or not, by job.
    """

    sweep: Sweep
    ended: dict[str, TrainingLog] = {}
