"""What a scheduler has to do after a decision."""

from collections.abc import Mapping, Sequence

import msgspec

from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, Option, same_nodes
from ronda.instances.plan import Plan


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What a job runs on from now on: an `Allocation` whose nodes have their names.

    Attributes
    ----------
    option
        How it runs: GPUs, clock, batch, rate.
    placement
        GPUs on each node, by its name.
    gpu_type
        Name of the GPU type.
    array
        Name of the array of jobs of one fusion class that share these GPUs; None: it is alone.
    """

    option: Option
    placement: dict[str, int]
    gpu_type: str
    array: str | None = None


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What differs from what runs; jobs that are not named go on, or wait, as they do.

    Those of an array from which others are gone go on in it, faster: they are not named.

    Attributes
    ----------
    start
        Jobs that begin to run, or resume.
    stop
        Jobs that give up what they hold.
    resize
        Running jobs that change GPUs, nodes or array.
    retune
        Running jobs that keep what they run on, and change clock or batch.
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
    retune: dict[str, Place] = {}
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
        return Place(
            option=given.option,
            placement={names[node]: gpus for node, gpus in given.placement},
            gpu_type=cluster.topology.pools[given.option.pool].gpu_type.name,
            array=given.array,
        )

    start, resize, retune = dict[str, Place](), dict[str, Place](), dict[str, Place]()
    for job, given in plan.allocations.items():
        before = held.get(job)
        if before is None:
            start[job] = place(given)
        elif not before.goes_on(given) and not before.narrows_to(given):
            stays = before.array == given.array and same_nodes(before.placement, given.placement)
            (retune if stays else resize)[job] = place(given)
    return Changes(
        start=start,
        stop=tuple(job for job in held if job not in plan.allocations),
        resize=resize,
        retune=retune,
        asleep=None if plan.asleep is None else tuple(names[node] for node in plan.asleep),
        plan=plan,
    )
