"""An energy budget at all times of its window: rows for those that matter, one after the other.

What is used by a time is a row of the model (`ronda.formulations.allocation.rows.energy`). Jobs
end, so that a choice may keep the budget by the end of the window and not before; where some of the
energy is banked there is no one row that says so for all choices. So the time by which a choice
uses most above the budget gets a row, and the choice is made again, until none is left. Each row is
what the checker asks, no more: every bound on the way holds.
"""

from collections.abc import Iterator
from dataclasses import replace as with_fields

from msgspec.structs import replace

from ronda.formulations.allocation.model_data import Case
from ronda.formulations.allocation.rows import tightest_by
from ronda.formulations.options.table import running_rows
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.decision.plan import Choice
from ronda.solvers.prices.dual import Search


class Metered:
    """The cases of a round, with rows for ever more times, until a choice keeps its energy budget.

    Who iterates sets `choice` for each case, and finds there in the end one for the whole round. A
    choice that still overspends, for lack of time, loses jobs when it is placed.
    """

    choice: Choice

    def __init__(self, case: Case, search: Search) -> None:
        self._case, self._search = case, search

    def __iter__(self) -> Iterator[Case]:
        """Yield cases; what runs now shows where to begin."""
        case, bound = self._case, float("inf")
        if not case.times_s or case.round.banked_j == 0:
            yield case
            return
        running = running_rows(case.table)
        case = with_fields(case, times_s=tightest_by(case, running[running >= 0])[:1])
        while True:
            yield case
            choice = self.choice
            if choice.status is SolutionStatus.NONE:
                return
            bound = min(bound, choice.bound)
            asleep = None if choice.realised is None else choice.realised.asleep
            time_s, kept = tightest_by(case, choice.chosen[choice.chosen >= 0], asleep)
            stopped = choice.stop is StopReason.TIME_LIMIT or self._search.deadline.over()
            if kept or time_s in case.times_s or stopped:
                self.choice = replace(choice, bound=max(bound, choice.objective))
                return
            case = with_fields(case, times_s=tuple(sorted({*case.times_s, time_s})))
