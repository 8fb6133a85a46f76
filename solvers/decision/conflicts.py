"""The report on the conflicting limits of a round, for ``ronda explain``."""

from collections.abc import Sequence

from ronda.formulations.allocation.model_data import whole_case
from ronda.formulations.allocation.rows import separable, shortages
from ronda.formulations.allocation.separable import normalise
from ronda.instances.clock import Deadline
from ronda.instances.plan import Conflict
from ronda.instances.tables.table import Report
from ronda.solvers.decision.plan import Question
from ronda.solvers.exact.infeasible import conflicts
from ronda.solvers.exact.linear_form import form_of


def conflicts_of(question: Question, deadline: Deadline) -> Sequence[Conflict] | None:
    """Return the conflicts of a question, [] if a plan keeps all limits, or None if unknown."""
    case = whole_case(question.round, question.table, question.values)
    if found := [*question.gave, *shortages(case)]:
        return found
    problem, _ = normalise(separable(case, both_limits=True))
    return conflicts(form_of(problem, [state.job.id for state in case.table.jobs]), deadline)


def conflicts_report(source: str, name: str, found: Sequence[Conflict] | None) -> Report:
    """Return the report on the conflicts of the round `source`.

    Its exit code is 0 if a plan keeps every limit, 1 if no plan does, and 3 if that is unknown.
    """
    named = [{"constraints": c.constraints, "message": c.message} for c in found or ()]
    fields = {"round": name, "feasible": None if found is None else not found, "conflicts": named}
    if found is None:
        words = f"{source}: not known in time: no plan was found, and no conflict"
        return Report(fields, [words], code=3)
    if not found:
        return Report(fields, [f"{source}: feasible: some plan keeps every limit"])
    return Report(fields, [f"{', '.join(c.constraints)}: {c.message}" for c in found], code=1)
