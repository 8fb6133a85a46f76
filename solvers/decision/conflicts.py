"""The report on the conflicting limits of a round, for ``ronda explain``."""

from collections.abc import Sequence

import numpy as np

from ronda.formulations.allocation.model_data import Case, Fidelity, restrict, whole_case
from ronda.formulations.allocation.rows import separable, shortages
from ronda.formulations.allocation.separable import normalise
from ronda.formulations.options.table import unbeaten
from ronda.instances.base import Mask
from ronda.instances.clock import Deadline
from ronda.instances.plan import Conflict
from ronda.instances.rules.problem import SHOWN
from ronda.instances.tables.table import Report
from ronda.solvers.decision.plan import Question
from ronda.solvers.exact.infeasible import conflicts
from ronda.solvers.exact.linear_form import form_of


def conflicts_of(question: Question, deadline: Deadline) -> Sequence[Conflict] | None:
    """Return the conflicts of a question, [] if a plan keeps all limits, or None if unknown."""
    case = whole_case(question.round, question.table, question.values)
    if found := [*question.gave, *shortages(case)]:
        return found
    case = restrict(case, needed(case))
    problem, _ = normalise(separable(case, both_limits=True))
    return conflicts(form_of(problem, [state.job.id for state in case.table.jobs]), deadline)


def needed(case: Case) -> Mask:
    """Return which options of a case can matter for whether some plan keeps every limit, (n,).

    They are those of jobs that must run, and those that help to meet a lower limit, unless another
    option of the job uses no more of anything. A plan that keeps every limit goes on keeping them
    without all others.
    """
    table, rows, own = case.table, case.rows, case.table.own
    found = table.must_run[case.job]
    if own is not None and own.counts.nnz and own.counts.data.min() < 0:
        found[:] = True  # what exceeds one limit may help with another
    elif own is not None:
        found |= np.asarray((own.use[:, rows] < 0).sum(axis=0)).ravel() > 0
    if table.slices is None and (found & ~table.must_run[case.job]).any():
        left = rows[found]
        costs = [table.gpus[left], table.extra_w[left]]
        if case.times_s:  # watts and the next cost bound energy at any time
            costs.append(costs[1] * np.minimum(case.lasts_s[left], case.round.window_s))
        costs += [*own.dense(left)] if own is not None else []
        groups = Fidelity.COUNTS.groups(table, left)
        found[found] = unbeaten(groups, np.zeros(len(left)), np.array(costs, dtype=float))
    return found


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
    return Report(fields, [f"{_some(c.constraints)}: {c.message}" for c in found], code=1)


def _some(names: Sequence[str]) -> str:
    """Return the last of many names, which are those of limits, and how many others there are."""
    few = [f"{len(names) - SHOWN} more"] * (len(names) > SHOWN)
    return ", ".join([*few, *names[-SHOWN:]])
