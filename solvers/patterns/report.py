"""The report on a plan of a round of tasks: what is placed, how full nodes are, and prices."""

import numpy as np

from ronda.instances.tables.table import Report, Table
from ronda.instances.tasks.arrays import TaskPlan, TaskRound
from ronda.instances.tasks.check import check_tasks
from ronda.instances.tasks.validate import unplaceable

ROWS = 10
"""The number of shapes that fit no node that the report names."""


def task_plan_report(round: TaskRound, plan: TaskPlan, elapsed_s: float) -> Report:
    """Return the report on a plan, with its check; the exit code is 1 if it breaks a rule."""
    violations, lost = check_tasks(round, plan), unplaceable(round)
    placed = np.unique(plan.task)
    before = np.unique(round.held_task)
    gone = ~np.isin(before, placed)
    held = round.held_task * round.nodes + round.held_node
    left = round.held_task[~np.isin(held, plan.task * round.nodes + plan.node)]
    moved = np.setdiff1d(left, before[gone])
    fields = {
        "round": round.name,
        "nodes": round.nodes,
        "tasks": round.tasks,
        "placed": len(placed),
        "running_before": len(before),
        "moved": len(moved),
        "stopped": int(np.count_nonzero(gone)),
        "objective": plan.objective,
        "bound": plan.bound,
        "gap": plan.gap,
        "stop": plan.stop,
        "seed": plan.record.seed,
        "total_s": elapsed_s,
        "fit_nowhere": sum(each.tasks for each in lost),
        "violations": len(violations),
        "message": plan.record.message,
    }
    facts = {
        "tasks placed": f"{len(placed):,} of {round.tasks:,} on {round.nodes:,} nodes",
        "objective": f"{plan.objective:,.6g}",
        "bound": f"{plan.bound:,.6g} (gap {plan.gap:.2%})",
        "stopped because": plan.stop,
        "seconds": f"{elapsed_s:.1f}",
    }
    if len(before):
        of = f"of {len(before):,} that run"
        facts["disrupted"] = f"{len(moved):,} moved, {fields['stopped']:,} stopped, {of}"
    notes = [f"violation: {violation}" for violation in violations]
    notes += [
        f"warning: {each.tasks:,} tasks of shape {each.shape} fit nowhere: {reason}"
        for each in lost[:ROWS]
        for reason in each.reasons
    ]
    if len(lost) > ROWS:
        notes.append(f"warning: and tasks of {len(lost) - ROWS:,} more shapes fit nowhere")
    return Report(fields, (Table.facts(facts), _kinds(round, plan)), notes, int(bool(violations)))


def _kinds(round: TaskRound, plan: TaskPlan) -> Table:
    """Return a table of kinds of nodes: how full they are, and what one more unit is worth."""
    used = np.zeros((len(round.kinds), len(round.resources)))
    kind = round.node_kind[plan.node]
    np.add.at(used, kind, round.use[round.shape[plan.task]])
    full = used / np.maximum(round.capacity * round.count[:, None], 1)
    busy = np.bincount(round.node_kind[np.unique(plan.node)], minlength=len(round.kinds))
    rows = [
        {
            "kind": name,
            "pool": round.pools[round.pool[k]],
            "nodes": f"{round.count[k]:,}",
            "in use": f"{busy[k]:,}",
            **{
                resource: f"{full[k, r]:.0%} at {plan.node_price[k, r]:.3g}"
                if round.capacity[k, r]
                else "–"
                for r, resource in enumerate(round.resources)
            },
        }
        for k, name in enumerate(round.kinds)
    ]
    return Table.of("share in use, and the price of one more unit", rows, left=(0, 1))
