"""The stages of a decision: the aims of a site one after the other, and then the objective.

The plan of each stage reaches so much of its aim, on nodes. A row keeps that for all later stages
(`ronda.formulations.options.stages`). Each stage has an even share of the time that is left.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from ronda.formulations.options.stages import least_of
from ronda.formulations.options.table import rows_of
from ronda.instances.base import Rows
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan, SolutionStatus, Stage
from ronda.instances.violation import ROUNDING

if TYPE_CHECKING:
    from ronda.solvers.decision.plan import Question

Decide = Callable[["Question", Deadline, Plan | None], Plan]
"""A function that decides a question by a deadline, from an earlier plan."""


def in_stages(
    question: "Question", decide: Decide, deadline: Deadline, initial: Plan | None
) -> Plan:
    """Return the plan for a question with the stages of its aims in its details.

    If the last stage finds no plan that keeps what an aim reached (the rows count options, and the
    plan must find room on nodes), the last plan that does is improved with the aims' jobs in place.
    """
    if not question.aims:
        return decide(question, deadline, initial)
    stages, known = list[Stage](), Plan()
    for left, aim in zip(range(len(question.aims), 0, -1), question.aims, strict=True):
        possible = np.isfinite(question.values)
        own = replace(
            question,
            table=aim.alone(question.table),
            values=np.where(possible, aim.worth, question.values),
            aims=(),
            claims=(),
        )
        made = decide(own, deadline.share(1 / (left + 1)), _from(known, initial))
        if made.status in (SolutionStatus.NONE, SolutionStatus.FALLBACK):
            break
        reached = aim.reached_by(own.table, _rows(question, made))
        bound = max(reached, made.bound if made.bound is not None else np.inf)
        stages.append(Stage(name=aim.name, reached=reached, bound=bound))
        known = made
        question = replace(question, table=aim.kept(question.table, reached))
    plan = decide(replace(question, aims=()), deadline, _from(known, initial))
    if not _keeps(question, stages, plan):
        plan = _beside(question, stages, known, plan, deadline)
    return replace(plan, details=replace(plan.details, stages=tuple(stages)))


def after_stages(question: "Question", plan: Plan) -> "Question":
    """Return a question as its last stage sees it, for the plan that was made."""
    for aim, stage in zip(question.aims, plan.details.stages, strict=False):
        question = replace(question, table=aim.kept(question.table, stage.reached))
    return question


def _from(known: Plan, initial: Plan | None) -> Plan | None:
    """Return the earlier plan with the allocations of the last stage, if there was one."""
    return replace(initial or Plan(), allocations=known.allocations) if known.policy else initial


def _rows(question: "Question", plan: Plan) -> Rows:
    rows = rows_of(question.table, plan)
    return rows[rows >= 0]


def _keeps(question: "Question", stages: list[Stage], plan: Plan) -> bool:
    """Return whether a plan reaches what the stages reached."""
    rows = _rows(question, plan)
    return all(
        aim.reached_by(question.table, rows) >= least_of(stage.reached) - ROUNDING
        for aim, stage in zip(question.aims, stages, strict=False)
    )


def _beside(
    question: "Question", stages: list[Stage], known: Plan, plan: Plan, deadline: Deadline
) -> Plan:
    """Return the plan of the last stage with more jobs where they find room.

    Its bound is that of the `plan` of the objective, which broke what the stages reached.
    """
    from ronda.solvers.decision.plan import Choice, to_plan

    rows = rows_of(question.table, known)
    worth = question.table.worth(question.values, rows)
    bound = np.inf if plan.bound is None else max(plan.bound, worth)
    choice = Choice(chosen=rows, objective=worth, bound=bound, prices=plan.prices, stop=plan.stop)
    more = to_plan(question, replace(choice, record=plan.record), deadline)
    if _keeps(question, stages, more):
        return replace(more, bound=more.bound and max(more.bound, more.objective or 0.0))
    return replace(
        plan,
        allocations=known.allocations,
        asleep=known.asleep,
        objective=worth,
        bound=plan.bound and bound,
        status=SolutionStatus.FEASIBLE,
    )
