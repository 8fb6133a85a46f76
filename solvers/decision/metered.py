"""An energy budget at all times of its window, with rows for the critical times alone.

A row of the model limits the energy used up to a time
(`ronda.formulations.allocation.rows.energy`). As jobs end, a choice may keep the budget at the end
of the window and break it before. If some of the energy is banked, no single row prevents this for
all choices. So the time with the largest excess over the budget gets a row, and the choice is made
again, until there is no excess. Each row is a condition of the checker, so every bound so far
holds.
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
    """The cases of a round, with rows for more and more times until a choice keeps the budget.

    The caller iterates and sets `choice` for each case. In the end `choice` is for the whole round.
    A choice that still overspends for lack of time loses jobs when it is placed.
    """

    choice: Choice

    def __init__(self, case: Case, search: Search) -> None:
        self._case, self._search = case, search

    def __iter__(self) -> Iterator[Case]:
        """Yield cases; the running jobs give the first critical time."""
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
