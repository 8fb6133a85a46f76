"""An energy budget at all times of its window: rows for those that matter, one after the other.

What is used by a time is a row of the model (`ronda.formulations.allocation.rows.energy`). Jobs
end, so that a choice may keep the budget by the end of the window and not before; where some of the
energy is banked there is no one row that says so for all choices. So the time by which a choice
uses most above the budget gets a row, and the choice is made again, until none is left. Each row is
what the checker asks, no more: every bound on the way holds.
"""

from collections.abc import Callable
from dataclasses import replace as with_fields

from msgspec.structs import replace

from ronda.formulations.allocation.model_data import Case
from ronda.formulations.allocation.rows import tightest_by
from ronda.formulations.options.table import running_rows
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.decision.plan import Choice
from ronda.solvers.prices.dual import Search


def metered(case: Case, solve: Callable[[Case], Choice], search: Search) -> Choice:
    """Return a choice for a case that keeps the energy budget at all times, if there is time.

    What runs now shows where to begin. A choice that overspends loses jobs when it is placed.
    """
    if not case.times_s or case.round.banked_j == 0:
        return solve(case)
    running, bound = running_rows(case.table), float("inf")
    case = with_fields(case, times_s=tightest_by(case, running[running >= 0])[:1])
    while True:
        choice = solve(case)
        if choice.status is SolutionStatus.NONE:
            return choice
        bound = min(bound, choice.bound)
        placed = choice.placing.realised
        asleep = None if placed is None else placed.asleep
        time_s, kept = tightest_by(case, choice.chosen[choice.chosen >= 0], asleep)
        stopped = choice.stop is StopReason.TIME_LIMIT or search.deadline.over()
        if kept or time_s in case.times_s or stopped:
            return replace(choice, bound=max(bound, choice.objective))
        case = with_fields(case, times_s=tuple(sorted({*case.times_s, time_s})))
