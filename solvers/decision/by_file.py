"""Choosing every job's option as another solver did, whose solution of the round's model is a file.

The bound is that of the price engine, whatever the other solver claims.
"""

import os

from msgspec.structs import replace

from ronda.formulations.allocation.pyomo_model import build, chosen_rows
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.decision.by_prices import allocate_by_prices
from ronda.solvers.decision.plan import Choice, Question
from ronda.solvers.exact.model_file import load_solution
from ronda.solvers.prices import Search


def allocate_by_file(question: Question, path: str | os.PathLike[str], search: Search) -> Choice:
    """Return the choice of a solution file, for the model that `ronda export` writes.

    InputError if the file is none for the model of this question.
    """
    model = build(question.round, question.table, question.values)
    load_solution(model, path)
    best = allocate_by_prices(question.round, question.table, question.values, search)
    if best.status is SolutionStatus.NONE:
        return best
    chosen = chosen_rows(model)
    worth = float(question.values[chosen[chosen >= 0]].sum())
    made = replace(
        best,
        chosen=chosen,
        objective=worth,
        bound=max(best.bound, worth),
        stop=StopReason.COMPLETE,
        incumbents=((search.deadline.elapsed(), worth),),
        solver="file",
        message=f"read from {os.fspath(path)}",
        racks=None,
    )
    proven = made.closed(search.gap)
    return replace(made, status=SolutionStatus.OPTIMAL if proven else SolutionStatus.FEASIBLE)
