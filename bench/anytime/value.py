"""What any policy's plan is worth under one objective, whatever the policy itself aimed at."""

from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.formulations.objectives.forms import values
from ronda.formulations.objectives.outlook import loss_of_moves
from ronda.formulations.options.table import SPANS, OptionTable, rows_of
from ronda.instances.job import Option
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.decision.plan import Question


def plan_value(round: Round, plan: Plan, objective: str) -> float:
    """Return the value of a plan's options under an objective, less what its moves cost.

    Switching to another option is inside the values; jobs that keep their option on other nodes
    lose progress besides (`ronda.formulations.objectives.outlook.loss_of_moves`). Options that the
    round's table does not have (a GPU count off the ladder) are added to it at the rate and power
    that the plan states, which `ronda.check` holds against the profile.
    """
    question = Question.of(round, objective)
    table, worth = question.table, question.values
    found = rows_of(table, plan)
    strange = {
        j: plan.allocations[state.job.id].option
        for j, state in enumerate(table.jobs)
        if found[j] < 0 and state.job.id in plan.allocations
    }
    if strange:
        table = with_options(table, strange)
        found, worth = rows_of(table, plan), values(round, table, objective)
    rows = found[[state.job.id in plan.allocations for state in table.jobs]]
    moved = [table.jobs[int(table.job[k])] for k in rows[table.current[rows]].tolist()]
    ids = tuple(
        s.job.id
        for s in moved
        if s.allocation and s.allocation.placement != plan.allocations[s.job.id].placement
    )
    return float(worth[rows].sum()) - loss_of_moves(round, table, worth, rows, ids)


def with_options(table: OptionTable, more: dict[int, Option]) -> OptionTable:
    """Return a table with one more option for some jobs, behind their own rows."""
    jobs = sorted(more)
    at = table.start[np.array(jobs) + 1]
    added = np.isin(np.arange(len(table.jobs)), jobs)
    columns: dict[str, list[Any]] = {
        name: [getattr(more[j], name) for j in jobs]
        for name in ("pool", "gpus", "width", "clock", "batch", "rate", "power_w")
    }
    columns["job"], columns["current"] = jobs, [False] * len(jobs)
    columns["span"] = [SPANS.index(more[j].span) for j in jobs]
    changed: dict[str, Any] = {
        name: np.insert(getattr(table, name), at, new) for name, new in columns.items()
    }
    start = table.start + np.concatenate([[0], np.cumsum(added)])
    return replace(table, start=start, **changed)
