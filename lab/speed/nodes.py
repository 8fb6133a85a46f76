"""Speed of plans for many tasks on many nodes, from arrays to a checked plan, beside other ways."""

from math import inf
from typing import Any

import numpy as np

from lab.nodes.in_order import best_fit, price_greedy, worth_of
from lab.nodes.models import whole_on_nodes
from lab.speed.cases import case, tell, timed
from ronda.bench.runs.runner import peak_rss_mib
from ronda.instances.errors import InputError
from ronda.instances.generate.tasks import TaskMix, azure_like, blocks, openb_like
from ronda.instances.plan import StopReason
from ronda.instances.tasks.arrays import TaskPlan, TaskRound
from ronda.instances.tasks.check import check_tasks
from ronda.solvers.patterns.answer import solve_tasks

FAMILIES = {"openb": (openb_like, 10), "azure": (azure_like, 16), "blocks": (blocks, 3)}
"""The generator of each family, and its usual number of tasks a node."""

RULES = {"best-fit": best_fit, "price-greedy": price_greedy}
"""Who places tasks one after the other, for good."""


@case("10000")
def measure_nodes(
    jobs: int,
    family: str = "openb",
    nodes: int | None = None,
    seed: int = 0,
    running: float = 0.0,
    most_disrupted: int | None = None,
    solver: str = "prices",
    gap: float = 1.5e-3,
    limit_s: float | None = None,
) -> dict[str, Any]:
    """Time plans for many tasks on many nodes, from arrays to a checked plan.

    By prices, with a bound; by best-fit or price-greedy, which place one task after another; or by
    highs, which solves one model of whole slots on each node that may put a group together.
    """
    generate, usual = FAMILIES[family]
    nodes = max(1, jobs // usual) if nodes is None else nodes
    mix = TaskMix(running=running, most_disrupted=most_disrupted)
    tell(f"nodes: {family}, {nodes:,} nodes, {jobs:,} tasks, {solver} ...")
    round_, build_s, _ = timed(lambda: generate(nodes, jobs, seed, mix))
    found, total_s, cpu_s = timed(lambda: _answered(round_, solver, gap, limit_s, seed))
    return {
        "nodes": nodes,
        "total_s": total_s,
        "build_s": build_s,
        "solve_s": total_s,
        "cpu_s": cpu_s,
        "peak_rss_mib": round(peak_rss_mib(), 1),
        "gap_asked": gap,
    } | found


def _answered(
    round_: TaskRound, solver: str, gap: float, limit_s: float | None, seed: int
) -> dict[str, Any]:
    """Return what a solver finds, and what is wrong with its plan; HiGHS's is not one of tasks."""
    if solver == "highs":
        return whole_on_nodes(round_, gap, inf if limit_s is None else limit_s)._asdict()
    if solver == "prices":
        plan = solve_tasks(round_, gap=gap, deadline=limit_s, seed=seed)
    elif solver not in RULES:
        raise InputError("--solver", solver, f"prices, highs, {', '.join(RULES)}")
    else:
        task, node = RULES[solver](round_)
        plan = TaskPlan(
            task=task,
            node=node,
            objective=worth_of(round_, task, node),
            bound=inf,
            node_price=np.zeros(round_.capacity.shape),
            stop=StopReason.COMPLETE,
        )
    found = {"objective": plan.objective, "stop": plan.stop} | _moves(round_, plan)
    proven = plan.bound < inf
    found |= {"bound": plan.bound if proven else None, "gap": plan.gap if proven else None}
    return found | {
        "placed": len(np.unique(plan.task)),
        "violations": len(check_tasks(round_, plan)),
    }


def _moves(round_: TaskRound, plan: TaskPlan) -> dict[str, int]:
    """Return how many running jobs go on elsewhere, and how many stop."""
    job = np.arange(round_.tasks) if round_.job is None else round_.job
    stays = np.isin(
        round_.held_task * round_.nodes + round_.held_node, plan.task * round_.nodes + plan.node
    )
    left = np.unique(job[round_.held_task[~stays]])
    moved = np.isin(left, job[plan.task])
    return {"moved": int(moved.sum()), "stopped": int((~moved).sum())}
