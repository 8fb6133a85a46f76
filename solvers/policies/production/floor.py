"""The jobs that run under a decision in the making, and the room that they leave."""

from collections.abc import Callable, Collection, Iterable

from ronda.formulations.placement.nodes import Placement
from ronda.formulations.site.disruption import Purse
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.round import Round
from ronda.solvers.greedy.room import Room


class Floor:
    """The jobs that go on and those that start, while a rule starts and stops jobs one by one.

    Parameters
    ----------
    until_end
        As for `Room`: whether the energy budget must cover jobs until they end.

    Attributes
    ----------
    room
        The room beside these jobs.
    started
        The jobs that start, with their allocations.
    """

    def __init__(self, round: Round, *, until_end: bool = False) -> None:
        self.round, self._until_end = round, until_end
        self._going = {state.job.id: state for state in round.running}
        self.started: dict[str, tuple[JobState, Allocation]] = {}
        self.room, self._purse = self.room_without(()), Purse(round)
        self._ranks = {each.name: each.rank for each in round.site.classes}

    def rank(self, state: JobState) -> int:
        """Return the rank of a job's priority class, 0 without one."""
        return self._ranks.get(state.job.priority or "", 0)

    def standing(self) -> list[tuple[JobState, Allocation]]:
        """Return all jobs that run under the decision, with their allocations."""
        held = self.round.held
        return [(s, held[job]) for job, s in self._going.items()] + [*self.started.values()]

    def room_without(self, stopped: Collection[str]) -> Room:
        """Return the room beside the jobs if those with the given ids stopped."""
        staying = [state for job, state in self._going.items() if job not in stopped]
        room = Room(self.round, staying, until_end=self._until_end)
        for job, (state, given) in self.started.items():
            if job not in stopped:
                room.take(state, given)
        return room

    def way(
        self, state: JobState, option: Option, stopped: Collection[JobState] = ()
    ) -> Allocation | None:
        """Return the allocation that a job would get if others stopped, or None without room.

        Nobody may stop beyond the disruption budget.
        """
        if stopped and self._purse and not self._purse.allows([*self._gone(), *stopped]):
            return None
        held = [each.allocation.option for each in stopped if each.allocation is not None]
        freed = sum(each.gpus for each in held if each.pool == option.pool)
        if self.room.nodes(option.pool).total + freed < option.gpus:
            return None
        room = self.room_without({each.job.id for each in stopped}) if stopped else self.room
        return room.way(state, option)

    def fit(
        self, state: JobState, bears: Callable[[Option, Placement], bool] | None = None
    ) -> Allocation | None:
        """Start a job in the first pool with room; return its allocation, or None without room.

        `bears` may refuse an option at a placement.
        """
        given = self.room.fit(state, bears=bears)
        if given is not None:
            self.started[state.job.id] = state, given
        return given

    def start(self, state: JobState, given: Allocation) -> None:
        """Start a job with an allocation that is free."""
        self.room.take(state, given)
        self.started[state.job.id] = state, given

    def stop(self, stopped: Iterable[JobState]) -> None:
        """Stop jobs that run."""
        for state in stopped:
            self._going.pop(state.job.id, None)
        self.room = self.room_without(())

    def stoppable(self, state: JobState) -> bool:
        """Return whether a job runs and may be stopped."""
        return self.goes_on(state) and state.job.preemptible

    def goes_on(self, state: JobState) -> bool:
        """Return whether a job goes on as it runs."""
        return state.job.id in self._going

    def _gone(self) -> list[JobState]:
        return [state for state in self.round.running if state.job.id not in self._going]

    def stopped(self) -> list[JobState]:
        """Return the jobs that run now, but not under the decision."""
        return [state for state in self._gone() if state.job.id not in self.started]

    def resume(self, state: JobState) -> bool:
        """Let a stopped job go on if its GPUs are still free; return whether they are."""
        held = self.round.held[state.job.id]
        if not self.room.keep(state, held):
            return False
        self._going[state.job.id] = state
        return True

    def allocations(self) -> dict[str, Allocation]:
        """Return the allocations of all jobs that run under the decision."""
        return {state.job.id: given for state, given in self.standing()}


def eligible(round: Round) -> list[JobState]:
    """Return the waiting jobs that may start now, in order of submission."""
    return [state for state in round.waiting if state.blocked is None]
