"""Options on nodes: the answer of a placer, in the round's own objects."""

from collections.abc import Mapping
from typing import NamedTuple

from ronda.instances.job import Allocation, JobState, Option, same_nodes
from ronda.instances.round import Round


class Placed(NamedTuple):
    """Options on nodes, by job id and in the order of the choice.

    `moved` are jobs that keep their option but change nodes, `moved_gpus` their GPUs on nodes that
    are new to them. `asleep` are the nodes to put, or leave, asleep; None: as they are.
    """

    allocations: dict[str, Allocation]
    unplaced: tuple[str, ...]
    moved: tuple[str, ...]
    moved_gpus: int
    asleep: tuple[int, ...] | None


def unchanged(state: JobState, option: Option) -> Allocation | None:
    """Return what the job runs on if the option leaves it unchanged, see `Option.same_way`."""
    held = state.allocation
    return held if held is not None and held.option.same_way(option) else None


def assemble(
    round: Round,
    chosen: Mapping[str, Option],
    held: Mapping[str, Allocation | None],
    placements: Mapping[str, tuple[tuple[int, int], ...]],
    *,
    may_sleep: bool,
    awake: Mapping[int, int],
) -> Placed:
    """Return the answer in the order of the choice."""
    allocations: dict[str, Allocation] = {}
    moved, moved_gpus = [], 0
    for job, option in chosen.items():
        placement = placements.get(job)
        if placement is None:
            continue
        kept = held[job]
        if kept is not None:
            if same_nodes(kept.placement, placement):
                allocations[job] = kept
                continue
            moved.append(job)
            before = dict(kept.placement)
            moved_gpus += sum(max(0, gpus - before.get(node, 0)) for node, gpus in placement)
        allocations[job] = Allocation(option=option, placement=placement)
    return Placed(
        allocations,
        tuple([job for job in chosen if job not in allocations]),
        tuple(moved),
        moved_gpus,
        _sleepers(round, allocations, may_sleep=may_sleep, awake=awake),
    )


def as_they_are(round: Round, held: dict[str, Allocation]) -> Placed:
    """Return the answer in which all jobs just go on."""
    return Placed(held, (), (), 0, _sleepers(round, held, may_sleep=False, awake={}))


def _sleepers(
    round: Round,
    allocations: Mapping[str, Allocation],
    *,
    may_sleep: bool,
    awake: Mapping[int, int],
) -> tuple[int, ...] | None:
    """Return the nodes that sleep from now on; None if nothing changes."""
    if not may_sleep and not round.asleep:
        return None
    used = {node for allocation in allocations.values() for node, _ in allocation.placement}
    sleeping = set(round.asleep)
    if not may_sleep:
        return tuple(sorted(sleeping - used)) if sleeping & used else None
    pools = round.cluster.topology.node_pool.tolist()
    spare = dict(awake)
    for node in used:
        if pools[node] in spare:
            spare[pools[node]] -= 1
    idle = sorted(set(range(len(pools))) - used, key=lambda node: (node in sleeping, node))
    asleep = []
    for node in idle:
        if spare.get(pools[node], 0) > 0:
            spare[pools[node]] -= 1
        else:
            asleep.append(node)
    return tuple(sorted(asleep))
