"""The contents of a round of tasks as a report."""

import numpy as np

from ronda.instances.files.contents import fields_report
from ronda.instances.tables.table import Report
from ronda.instances.tasks.arrays import TaskRound
from ronda.instances.tasks.validate import unplaceable


def tasks_report(round: TaskRound) -> Report:
    """Return a report on the contents of a round, and on its tasks that fit no node.

    Amounts asked for are those of all tasks; of a job with several ways, of its first.
    """
    job = np.arange(round.tasks) if round.job is None else round.job
    first = np.unique(job, return_index=True)[1]
    taken = round.use * round.slices[:, None]
    asked = taken[round.shape[first]].sum(axis=0, dtype=float)
    there = (round.capacity * round.count[:, None]).sum(axis=0, dtype=float)
    grouped = round.group[round.group >= 0]
    nodes = np.bincount(round.pool, round.count, len(round.pools))
    return fields_report(
        {
            "name": round.name,
            "kind": "tasks",
            "nodes": round.nodes,
            "pools": {pool: f"{n:,.0f} nodes" for pool, n in zip(round.pools, nodes, strict=True)},
            "kinds_of_nodes": len(round.kinds),
            "tasks": round.tasks,
            "jobs": len(first),
            "shapes": len(np.unique(round.shape)),
            "gangs": int((round.slices[round.shape] > 1).sum()),
            "in_groups": len(grouped),
            "groups": len(np.unique(grouped)),
            "running": len(np.unique(job[round.held_task])),
            "most_disrupted": round.most_disrupted,
            "asked_for": {
                name: f"{a:,.0f}, {a / max(1.0, t):.2f} of {t:,.0f}"
                for name, a, t in zip(round.resources, asked, there, strict=True)
            },
            "fit_no_node": {
                f"shape {each.shape}": f"{each.tasks:,} tasks: {'; '.join(each.reasons)}"
                for each in unplaceable(round)
            },
        }
    )
