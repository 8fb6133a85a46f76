"""A round of tasks on nodes, and a plan for it, as arrays."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ronda.instances.base import Floats, Ints, Rows
from ronda.instances.plan import SolveRecord, StopReason, gap_between


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskRound:
    """Tasks with values, nodes with resources, and what holds nodes now.

    A task takes one slice of its shape on a node, or several slices, each on a node of its own (a
    gang). A plan gives tasks all of their slices in one pool, or none. Its value is the sum of
    ``value * speed`` of the tasks that it places, less the `move_cost` of tasks that ran and are
    placed on other nodes.

    Attributes
    ----------
    name
        Name of the round.
    resources
        Names of the resources of nodes, such as ``cpu_milli``, ``memory_mib`` or ``gpu_64ths``;
        their number is R. Amounts are whole numbers.
    kinds, capacity, count, pool
        Name of each kind of nodes, what a node of it has of each resource, shape (K, R), how many
        nodes there are, shape (K,), and the index of its pool, shape (K,). Nodes are numbered from
        0, kind by kind.
    pools
        Names of the pools.
    use, slices
        What a slice of each shape takes of a node, shape (S, R), and the number of slices of a
        task, shape (S,).
    speed
        Factor of the value of a task of a shape in a pool, shape (S, P); 0 where it may not run.
    shape, value
        Shape of each task, shape (T,), and its value at speed 1, shape (T,), above 0.
    group
        Group of each task, shape (T,), -1 for none: no two slices of a group are on one node. The
        ways of one job have the same.
    job
        Tasks with the same number are ways to run one job, at most one of which is placed; shape
        (T,). None if every task is a job of its own.
    held_task, held_node
        What runs now: pairs of a task and a node, one for each slice, shape (H,).
    move_cost
        What a running task loses if it goes on elsewhere, shape (T,). The ways of one job that runs
        all lose that of the way in which it runs.
    most_disrupted
        The most running jobs that a plan may stop or move. None for any number.
    """

    name: str = "tasks"
    resources: tuple[str, ...]
    kinds: tuple[str, ...]
    capacity: Ints
    count: Ints
    pool: Rows
    pools: tuple[str, ...]
    use: Ints
    slices: Ints
    speed: Floats
    shape: Rows
    value: Floats
    group: Rows
    job: Rows | None = None
    held_task: Rows
    held_node: Rows
    move_cost: Floats
    most_disrupted: int | None = None

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return len(self.shape)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return int(self.count.sum())

    @cached_property
    def node_kind(self) -> Rows:
        """The kind of each node, shape (N,)."""
        return np.repeat(np.arange(len(self.count)), self.count)


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskPlan:
    """The answer to a `TaskRound`.

    Attributes
    ----------
    task, node
        Pairs of a task and a node, one for each slice that is placed, ascending, shape (A,).
    objective, bound
        The plan's value, and an upper bound on that of every plan.
    node_price
        Value of one more unit of each resource on a node of each kind, shape (K, R).
    slot_price
        Price of a slice of each shape in each pool, shape (S, P), 0 where it fits no node. None if
        the bound is that of `node_price` alone.
    stop
        Why the search ended.
    record
        What the search cost.
    """

    task: Rows
    node: Rows
    objective: float
    bound: float
    node_price: Floats
    slot_price: Floats | None = None
    stop: StopReason
    record: SolveRecord = field(default_factory=SolveRecord)

    @property
    def gap(self) -> float:
        """The relative gap between bound and objective."""
        return gap_between(self.bound, self.objective)
