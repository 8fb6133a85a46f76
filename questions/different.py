"""The best different plans of a round: solve, cut off what was found, and solve again.

Two plans differ if a job has another option, or runs in one of them only. With R the options of a
plan, and U those of the jobs that it leaves out, the row

    Σ_{k in R} x_k − Σ_{k in U} x_k ≤ |R| − 1

cuts off that plan and no other (E. Balas and R. Jeroslow, *Canonical cuts on the unit hypercube*,
SIAM J. Applied Mathematics 23, 1972). Options are those of the model: one that another one of its
job beats in everything is no choice of its own.
"""

from dataclasses import replace as with_fields

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.rows import separable, shortages
from ronda.formulations.allocation.separable import Separable, normalise
from ronda.formulations.options.table import rows_of
from ronda.instances.arrays import Rows
from ronda.instances.check.checker import check
from ronda.instances.clock import OutOfTimeError
from ronda.instances.plan import Plan, StopReason
from ronda.solvers.decision.by_milp import solved
from ronda.solvers.decision.plan import Question, nobody, taken, to_plan
from ronda.solvers.exact.linear_form import form_of
from ronda.solvers.prices.dual import Search


def best_plans(question: Question, search: Search, number: int, within: float) -> list[Plan]:
    """Return at most `number` different plans, the best first.

    None falls short of the first by more than the share `within`. Choices for which nodes have no
    room, or whose plan breaks a rule, are left out. The bound is that of the first for all.
    """
    case = make_case(question.round, question.table, question.values)
    plans, before = list[Plan](), list[Rows]()
    if shortages(case):
        return plans
    problem, deadline, bound = separable(case, both_limits=True), search.deadline, np.inf
    while len(plans) < number and not deadline.over():
        began = deadline.elapsed()
        cut, units = normalise(_without(problem, before))
        none = nobody(question.table, StopReason.COMPLETE, search)
        outcome, choice = solved(form_of(cut), None, len(case.rows), none, search, began)
        if outcome.x is None:
            break
        chosen, _ = problem.answer(outcome.x)
        rows = taken(chosen, case.rows)
        worth = question.table.worth(question.values, rows)
        if not before and outcome.bound is not None:
            bound = outcome.bound * units.value
        most = plans[0].objective or 0.0 if plans else worth
        if worth < most - within * abs(most):
            break
        before.append(chosen)
        choice = replace(
            choice,
            chosen=rows,
            objective=worth,
            bound=max(bound, worth),
            scale=case.scale,
            incumbents=((deadline.elapsed(), worth),),
            fill=False,
        ).judged(search.gap)
        try:
            plan = to_plan(question, choice, deadline)
        except OutOfTimeError:
            break
        if (rows_of(question.table, plan) == rows).all() and not check(question.round, plan):
            plans.append(plan)
    return sorted(plans, key=lambda plan: -(plan.objective or 0.0))  # but for the gap they are


def _without(problem: Separable, before: list[Rows]) -> Separable:
    """Return a problem without the choices (J,) that were made before."""
    if not before:
        return problem
    job = np.arange(problem.jobs).repeat(np.diff(problem.start))
    cuts = []
    for chosen in before:
        row = np.where(chosen[job] < 0, -1.0, 0.0)
        row[chosen[chosen >= 0]] = 1.0
        cuts.append(row)
    most = [np.count_nonzero(chosen >= 0) - 1.0 for chosen in before]
    blocks = np.zeros((len(cuts), len(problem.block_value)))
    return with_fields(
        problem,
        use=Uses.of([*problem.use.dense(), *cuts]),
        block_use=np.vstack([problem.block_use, blocks]),
        capacity=np.append(problem.capacity, most),
        names=(*problem.names, *(f"other[{k}]" for k in range(len(cuts)))),
    )
