"""The independent checker of plans for rounds of tasks, with arithmetic of its own.

=================  =================================================================
code               rule that is broken
=================  =================================================================
unknown-task       the task is in the round
node               the node exists
order              pairs of task and node ascend
duplicate-node     the slices of a task are on nodes of their own
gang               a task has all of its slices
pool               the nodes of a task are in one pool, in which it may run
capacity           no node has more of a resource in use than it has
job                one way of a job is placed at most
group              no two slices of a group are on one node
disruption         no more running jobs are stopped or moved than the budget
objective          the claimed value is that of the placed tasks less moves (1e-9 relative)
bound              the claimed bound is no smaller than the value
prices             prices are numbers from 0 on
=================  =================================================================
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ronda.instances.arguments import checked
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.tasks.arrays import TaskPlan, TaskRound
from ronda.instances.violation import ROUNDING, Violation

MANY = 100
"""The most violations of a rule that are told one by one."""


@checked
def check_tasks(round: TaskRound, plan: TaskPlan) -> list[Violation]:
    """Return every violation of a rule by a plan for a round; the list is empty for a valid plan.

    Both have arrays of the right lengths, as those that are read from files. The first hundred
    violations of a rule are told one by one, and the number of the others.
    """
    task, node = plan.task, plan.node
    found = list(placement_violations(round, task, node))
    lost = {each.code for each in found} & {"unknown-task", "node"}
    falls = (task[1:] < task[:-1]) | ((task[1:] == task[:-1]) & (node[1:] < node[:-1]))
    found += _told("order", falls, "pair {k}", "task {0} comes after task {1}", task[1:], task[:-1])
    priced: list[tuple[Floats, Any, str, str, Any]]
    priced = [(plan.node_price, round.capacity, "kinds by resources", "kind {0}", round.kinds)]
    if plan.slot_price is not None:
        shapes = np.arange(len(round.speed))
        priced.append((plan.slot_price, round.speed, "shapes by pools", "shape {0}", shapes))
    for price, like, words, where, names in priced:
        if price.shape != like.shape:
            message = f"have the shape {price.shape}, and {words} {like.shape}"
            return [*found, Violation("prices", "plan", message)]
        odd = np.any(~((price >= 0) & (price < np.inf)), axis=1)
        found += _told("prices", odd, where, "has a price of {1}", names, price)
    return found if lost else [*found, *_worth(round, plan)]


def placement_violations(round: TaskRound, task: Rows, node: Rows) -> Iterator[Violation]:
    """Yield the violations of rules by what is on nodes together: a plan, or what runs."""
    lost = (task < 0) | (task >= round.tasks)
    yield from _told("unknown-task", lost, "task {0}", f"the round has {round.tasks:,}", task)
    none = (node < 0) | (node >= round.nodes)
    yield from _told("node", none, "node {0}", f"the round has {round.nodes:,}", node)
    if lost.any() or none.any():
        return
    order = np.lexsort((node, task))
    task, node = task[order], node[order]
    again = _same(task)
    twice = again & _same(node)
    yield from _told("duplicate-node", twice, "task {0}", "is on node {1} twice", task, node)
    placed, whole = np.bincount(task, minlength=round.tasks), round.slices[round.shape]
    part = (placed > 0) & (placed != whole)
    yield from _told("gang", part, "task {k}", "has {0} slices on nodes, of {1}", placed, whole)
    pool = round.pool[round.node_kind[node]]
    names = np.array(round.pools)[pool]
    shut = round.speed[round.shape[task], pool] == 0
    yield from _told("pool", shut, "task {0}", "may not run on node {1} of {2}", task, node, names)
    other = again & ~_same(pool)
    yield from _told("pool", other, "task {0}", "is on node {1} of {2} as well", task, node, names)
    for r, name in enumerate(round.resources):
        # Sums of floats do not wrap, and are exact below 2^53, as capacities are.
        taken = np.bincount(node, round.use[round.shape[task], r], round.nodes)
        has = round.capacity[round.node_kind, r]
        words = f"has {{0:,}} of {name}, and its tasks take {{1:,.0f}}"
        yield from _told("capacity", taken > has, "node {k}", words, has, taken)
    if round.job is not None:
        ways = np.bincount(round.job[task[~again]], minlength=1)
        yield from _told("job", ways > 1, "job {k}", "is placed in {0} ways", ways)
    group = round.group[task]
    order = np.lexsort((node, group))
    group, task, node = group[order], task[order], node[order]
    near = (group >= 0) & _same(group) & _same(node)
    yield from _told(
        "group", near, "group {0}", "has task {1} and one more on node {2}", group, task, node
    )


def _worth(round: TaskRound, plan: TaskPlan) -> Iterator[Violation]:
    """Yield the violations by a plan's value, bound and moves, given that all it names exists."""
    pool = np.full(round.tasks, -1)
    pool[plan.task] = round.pool[round.node_kind[plan.node]]
    task = np.flatnonzero(pool >= 0)
    job = np.arange(round.tasks) if round.job is None else round.job
    runs = np.zeros(round.tasks, dtype=bool)
    runs[job[round.held_task]] = True
    now, then = (
        t * round.nodes + n for t, n in ((round.held_task, round.held_node), (plan.task, plan.node))
    )
    stay = np.bincount(plan.task[np.isin(then, now, assume_unique=True)], minlength=round.tasks)
    kept = stay == round.slices[round.shape]
    moves = runs[job[task]] & ~kept[task]
    gained = round.value[task] * round.speed[round.shape[task], pool[task]]
    lost = np.where(moves, round.move_cost[task], 0.0)
    worth, scale = float(gained.sum() - lost.sum()), float(gained.sum() + lost.sum())
    if not abs(plan.objective - worth) <= ROUNDING * scale:
        yield Violation(
            "objective", "plan", f"claims {plan.objective:.12g}, and its tasks give {worth:.12g}"
        )
    if not plan.bound >= plan.objective - ROUNDING * scale:
        yield Violation(
            "bound", "plan", f"is {plan.bound:.12g}, below the value {plan.objective:.12g}"
        )
    disrupted, most = int(runs.sum() - kept.sum()), round.most_disrupted
    if most is not None and disrupted > most:
        yield Violation(
            "disruption", "plan", f"stops or moves {disrupted:,} running jobs, of at most {most:,}"
        )


def _same(column: Rows) -> Mask:
    """Return whether each element equals the one before it."""
    return np.append(np.zeros(min(1, len(column)), dtype=bool), column[1:] == column[:-1])


def _told(code: str, bad: Mask, where: str, message: str, *columns: Any) -> Iterator[Violation]:
    """Yield a violation for each element that is bad; texts are filled in from columns."""
    rows = np.flatnonzero(bad)
    for k in rows[:MANY].tolist():
        cells = [column[k] for column in columns]
        yield Violation(code, where.format(*cells, k=k), message.format(*cells, k=k))
    if len(rows) > MANY:
        yield Violation(code, "others", f"{len(rows) - MANY:,} more")
