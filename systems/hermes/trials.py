"""The trials of a round, apart from ordinary jobs, with their reported losses."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from ronda.instances.job import JobState
from ronda.instances.learning import Sweep, TrainingLog
from ronda.instances.models.cache import per_record
from ronda.instances.round import Round

MOST_DRAWN = 256
"""The largest number of reports that count in a log without individual losses."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A live trial with its job's state, its sweep and its losses from before the first epoch on.

    A diverged loss is infinite. Before the first report there are no losses.
    """

    state: JobState
    sweep: Sweep
    losses: tuple[float, ...]

    @property
    def name(self) -> str:
        """The id of the trial's job."""
        return self.state.job.id

    @property
    def reports(self) -> int:
        """The number of reports of the trial."""
        return max(0, len(self.losses) - 1)

    @property
    def runs(self) -> bool:
        """Whether the trial holds GPUs."""
        return self.state.allocation is not None


def trials_of(round: Round) -> list[Trial]:
    """Return the trials of a round, running ones first, each group in order of submission."""
    return [
        Trial(
            state,
            round.sweeps[state.job.sweep].sweep,
            () if state.log is None else reported(state.log),
        )
        for state in round.jobs
        if state.job.sweep is not None
    ]


@per_record(maxsize=65536)
def reported(log: TrainingLog) -> tuple[float, ...]:
    """Return all losses of a log from before the first epoch on; diverged losses are infinite.

    A log with only its last loss, such as one with accuracies, counts as a straight line of at most
    `MOST_DRAWN` reports.
    """
    if log.losses:
        return (log.initial_loss, *(inf if loss is None else loss for loss in log.losses))
    first, number = log.initial_loss, min(log.epochs, MOST_DRAWN)
    fall = 0.0 if log.loss is None else first - log.loss
    drawn = (first - fall * (k / number) for k in range(number))
    return (*drawn, inf if log.loss is None else log.loss)


@dataclass(frozen=True, slots=True)
class LiveSweep:
    """A sweep with its live trials and the losses of all its trials, even ended ones, by job id."""

    sweep: Sweep
    live: tuple[Trial, ...]
    losses: Mapping[str, tuple[float, ...]]

    @property
    def least(self) -> float:
        """The least loss that any trial has reported; infinite before the first report."""
        return min((min(each[1:]) for each in self.losses.values() if len(each) > 1), default=inf)


def searches(round: Round) -> dict[str, LiveSweep]:
    """Return the sweeps of a round, keyed by name, in the order of their first trials."""
    members: dict[str, list[Trial]] = {}
    for trial in trials_of(round):
        assert trial.state.job.sweep is not None
        members.setdefault(trial.state.job.sweep, []).append(trial)
    found = {}
    for name, live in members.items():
        ended = {job: reported(log) for job, log in round.sweeps[name].ended.items()}
        losses = ended | {t.name: t.losses for t in live}
        found[name] = LiveSweep(round.sweeps[name].sweep, tuple(live), losses)
    return found
