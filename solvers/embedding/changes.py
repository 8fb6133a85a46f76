"""What a scheduler has to do after a decision."""

from collections.abc import Mapping, Sequence

import msgspec

from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What a job runs on from now on.

    Attributes
    ----------
    gpus
        GPUs in all.
    nodes
        GPUs on each node, by its name.
    gpu_type
        Name of the GPU type.
    clock
        Clock as a fraction of the maximum.
    batch
        Global batch size.
    rate
        Work per second that is expected.
    """

    gpus: int
    nodes: dict[str, int]
    gpu_type: str
    clock: float
    batch: float
    rate: float


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What differs from what runs; jobs that are not named go on, or wait, as they do.

    Attributes
    ----------
    start
        Jobs that begin to run, or resume.
    stop
        Jobs that give up what they hold.
    resize
        Running jobs that change GPUs, nodes, clock or batch.
    asleep
        Names of nodes to put, or leave, asleep; None: as they are.
    cancelled
        Whether the decision was cancelled: then nothing changes.
    plan
        The whole plan, with objective, bound, status, prices and what was wrong, if anything.
    """

    start: dict[str, Place] = {}
    stop: tuple[str, ...] = ()
    resize: dict[str, Place] = {}
    asleep: tuple[str, ...] | None = None
    cancelled: bool = False
    plan: Plan = Plan()


def node_names(cluster: Cluster) -> list[str]:
    """Return names of all nodes: that of their group, and their number in it."""
    return [f"{g.name}-{k}" for g in cluster.node_groups for k in range(g.count)]


def changes(
    cluster: Cluster,
    names: Sequence[str],
    held: Mapping[str, Allocation],
    plan: Plan,
) -> Changes:
    """Return what a plan changes about what is held."""

    def place(given: Allocation) -> Place:
        option = given.option
        return Place(
            gpus=option.gpus,
            nodes={names[node]: gpus for node, gpus in given.placement},
            gpu_type=cluster.topology.pools[option.pool].gpu_type.name,
            clock=option.clock,
            batch=option.batch,
            rate=option.rate,
        )

    new = {job: a for job, a in plan.allocations.items() if goes_on(held.get(job), a) is False}
    return Changes(
        start={job: place(a) for job, a in new.items() if job not in held},
        stop=tuple(job for job in held if job not in plan.allocations),
        resize={job: place(a) for job, a in new.items() if job in held},
        asleep=None if plan.asleep is None else tuple(names[node] for node in plan.asleep),
        plan=plan,
    )


def goes_on(held: Allocation | None, given: Allocation) -> bool:
    """Tell whether a job runs on as it does, whatever rate is expected by now."""
    if held is None:
        return False
    same = held.option.same_way(given.option)
    return same and sorted(held.placement) == sorted(given.placement)
