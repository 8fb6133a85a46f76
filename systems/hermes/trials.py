"""The trials of a round with their reported losses, and the plan that follows from their order.

Ordinary jobs go before trials. Trials that scale may get other numbers of GPUs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from msgspec.structs import replace

from ronda.formulations.options.application import requested_options
from ronda.instances.job import JobState
from ronda.instances.learning import Sweep, TrainingLog
from ronda.instances.models.cache import per_record
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.greedy.room import Clocks, preempt_in_order

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


NONE: Mapping[str, int] = MappingProxyType({})


def firm(state: JobState) -> bool:
    """Return whether a job runs and may not be stopped."""
    return state.allocation is not None and not state.job.preemptible


def in_order(
    round: Round,
    order: Iterable[Trial],
    clocks: Clocks,
    *,
    nodes: Mapping[str, int] = NONE,
    sizes: Mapping[str, int] = NONE,
) -> Plan:
    """Return the plan that runs jobs without a sweep, then trials in order, as far as they fit.

    Trials outside the order wait unless they may not be stopped. A trial in `nodes` starts only on
    its node, and a trial in `sizes` runs on its number of GPUs. If not all `sizes` fit together,
    trials keep the GPUs that they have.
    """
    kept = [s for s in round.jobs if s.job.sweep is None or firm(s)]
    known = {s.job.id for s in kept}
    trials = [t.state for t in order if t.name not in known]
    given = [sized(state, sizes.get(state.job.id)) for state in trials]
    found = preempt_in_order(round, [*kept, *given], clocks=clocks, nodes=nodes)
    if any(a is not b for a, b in zip(given, trials, strict=True)) and not all(
        state.job.id in found for state in trials if state.allocation is not None
    ):
        found = preempt_in_order(round, [*kept, *trials], clocks=clocks, nodes=nodes)
    return Plan(allocations=found)


def sized(state: JobState, gpus: int | None) -> JobState:
    """Return a trial that asks for the given number of GPUs; the same object if it does already."""
    has = state.job.gpus if state.allocation is None else state.allocation.option.gpus
    if gpus is None or gpus == has:
        return state
    return replace(state, job=replace(state.job, gpus=gpus), allocation=None)


def speed(round: Round, state: JobState, gpus: int) -> float:
    """Return the work per second of a trial on `gpus` GPUs; 0 if it cannot run on them."""
    job = state.job
    if not (job.min_gpus or job.gpus) <= gpus <= (job.max_gpus or job.gpus):
        return 0.0
    options = requested_options(round, replace(state, job=replace(job, gpus=gpus)))
    return max((option.rate for option in options), default=0.0)


def most_gpus(round: Round, state: JobState, atoms: int) -> int:
    """Return the largest number of GPUs <= `atoms` on which a trial runs faster than on fewer."""
    best, most = 0.0, 0
    for gpus in range(1, min(atoms, state.job.max_gpus or state.job.gpus) + 1):
        rate = speed(round, state, gpus)
        if rate > best:
            best, most = rate, gpus
    return most or state.job.gpus


def shares(most: Sequence[int], atoms: int) -> list[int]:
    """Return the GPUs of trials, best first: one for each, and an even share of the rest.

    A trial can use at most its entry of `most` GPUs. The first trials get the remainder.
    """
    given = [1] * len(most)
    left = atoms - len(most)
    while left > 0 and any(g < m for g, m in zip(given, most, strict=True)):
        for k, limit in enumerate(most):
            if left > 0 and given[k] < limit:
                given[k] += 1
                left -= 1
    return given


def worth_resizing(now: float, then: float, time_left_s: float, pause_s: float) -> bool:
    """Return whether speed `then` after a pause gets a trial further by the deadline than `now`."""
    gain = 1.1  # a smaller one is not worth it
    if time_left_s == inf:
        return then > gain * now
    return then * (time_left_s - pause_s) > gain * now * time_left_s
