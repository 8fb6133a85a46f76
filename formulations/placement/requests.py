"""The placement of chosen options on nodes, with as few moves as possible."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ronda.formulations.placement.by_book import SeatedJob, seated
from ronda.formulations.placement.moves import MoveRoom
from ronda.formulations.placement.nodes import (
    Piece,
    PoolNodes,
    PoolRequest,
    bits,
    bits_of,
    free_lists,
    pool_nodes,
)
from ronda.formulations.placement.packing import Staying, pack
from ronda.formulations.placement.parts import Places
from ronda.formulations.placement.rack_power import RackPower
from ronda.formulations.site.nodes import concerns_nodes
from ronda.formulations.watts import capped, extra_gpu_w
from ronda.instances.base import Mask
from ronda.instances.clock import watched
from ronda.instances.job import Allocation, JobState, Option, same_nodes, used_nodes
from ronda.instances.round import Round


class Placed(NamedTuple):
    """The allocations of placed jobs by job id, in the order of the choice.

    `moved` are jobs that keep their option but change nodes, and `moved_gpus` counts their GPUs on
    new nodes. `asleep` are the nodes that sleep from now on, None if these do not change.
    """

    allocations: dict[str, Allocation]
    unplaced: tuple[str, ...]
    moved: tuple[str, ...]
    moved_gpus: int
    asleep: tuple[int, ...] | None


def unchanged(state: JobState, option: Option) -> Allocation | None:
    """Return the job's current allocation if the option leaves it unchanged (`Option.same_way`)."""
    held = state.allocation
    return held if held is not None and held.option.same_way(option) else None


def assemble(
    round: Round,
    chosen: Mapping[str, Option],
    held: Mapping[str, Allocation | None],
    placements: Mapping[str, tuple[tuple[int, int], ...]],
    parts: Mapping[str, Places] = MappingProxyType({}),
    *,
    may_sleep: bool,
    awake: Mapping[int, int],
) -> Placed:
    """Return the placed options in the order of the choice."""
    allocations: dict[str, Allocation] = {}
    moved, moved_gpus = [], 0
    for job, option in chosen.items():
        placement = placements.get(job)
        if placement is None:
            continue
        kept = held[job]
        if kept is not None:
            if same_nodes(kept.placement, placement) and kept.parts == parts.get(job, kept.parts):
                allocations[job] = kept
                continue
            moved.append(job)
            before = dict(kept.placement)
            moved_gpus += sum(max(0, gpus - before.get(node, 0)) for node, gpus in placement)
        allocations[job] = Allocation(option=option, placement=placement, parts=parts.get(job, ()))
    return Placed(
        allocations,
        tuple([job for job in chosen if job not in allocations]),
        tuple(moved),
        moved_gpus,
        _sleepers(round, allocations, may_sleep=may_sleep, awake=awake),
    )


def _sleepers(
    round: Round,
    allocations: Mapping[str, Allocation],
    *,
    may_sleep: bool,
    awake: Mapping[int, int],
) -> tuple[int, ...] | None:
    """Return the nodes that sleep from now on, or None if these do not change."""
    if not may_sleep and not round.asleep:
        return None
    used = used_nodes(allocations.values())
    sleeping = set(round.asleep)
    if not may_sleep:
        return tuple(sorted(sleeping - used)) if sleeping & used else None
    topology = round.cluster.topology
    pools = topology.node_pool.tolist()
    spare = dict(awake)
    for node in used:
        if pools[node] in spare:
            spare[pools[node]] -= 1
    up = {node for node, gpus in enumerate(topology.node_gpus.tolist()) if gpus}
    idle = sorted(up - used, key=lambda node: (node in sleeping, node))
    asleep = []
    for node in idle:
        if spare.get(pools[node], 0) > 0:
            spare[pools[node]] -= 1
        else:
            asleep.append(node)
    return tuple(sorted(asleep))


def place(
    round: Round,
    chosen: Mapping[str, Option],
    *,
    may_sleep: bool = False,
    awake: Mapping[int, int] | None = None,
    migrate: bool = True,
    yielding: Collection[str] = (),
    racks: Mapping[str, int] | None = None,
    room: MoveRoom | None = None,
) -> Placed:
    """Put every chosen option on nodes, and list the nodes of each job in ascending order.

    A running job whose option has not changed (except for its expected rate) keeps its
    `Allocation` object, unless a larger job needs the room. An option smaller than a node goes to
    the fullest node with room. A larger option takes whole nodes in as few racks as possible, and
    its remainder goes to one more node. Nodes in use are preferred to idle nodes, and idle nodes to
    sleeping ones. For GPU counts that divide each other and the node size, every option is placed
    if there are enough GPUs (see `ronda.formulations.placement.packing`). The placement respects
    the power caps of racks. If some rule concerns single nodes, they are placed as in
    `ronda.formulations.placement.by_book`.

    Parameters
    ----------
    chosen
        The options by job id, the most important first; the last ones are left out if there is too
        little room. Running jobs without a chosen option stop.
    may_sleep, awake
        Whether to put nodes that no job uses to sleep, and the number of nodes per pool (by index)
        that stay awake in that case. Jobs of a named pool use only these nodes. Pools that are not
        named keep no idle node awake.
    migrate
        Whether running jobs whose option has not changed may move to make room.
    yielding
        Running jobs that give up their nodes before others are placed; they may return there.
    racks
        Jobs of span "rack" that are placed first, with the index of the rack that each gets if it
        has room.
    room
        The room for running jobs that move. Those with a cost then stay before others are placed,
        and move only as far as it allows. None: any may move.

    Raises
    ------
    ValueError
        If a job is not live in the round, or `awake` is given without `may_sleep`.
    """
    if awake and not may_sleep:
        raise ValueError("a number of nodes to be awake needs may_sleep")
    states = {state.job.id: state for state in round.jobs}
    if not chosen.keys() <= states.keys():
        unknown = [job for job in chosen if job not in states]
        raise ValueError(f"jobs that are not live in the round: {', '.join(unknown)}")
    held = {job: unchanged(states[job], option) for job, option in chosen.items()}
    caps = capped(round.cluster)
    still = {job: kept for job, kept in held.items() if kept is not None}
    if len(still) == len(held) and not (may_sleep or yielding or caps):
        asleep = _sleepers(round, still, may_sleep=False, awake={})
        return Placed(still, (), (), 0, asleep)
    pinned = {
        job for job, kept in held.items() if kept and not (migrate and states[job].job.preemptible)
    }
    if room is not None:
        yielding = [job for job in yielding if job not in room.cost]
    stays = {job: kept for job, kept in held.items() if job in pinned or job not in yielding}
    asked = _requests(round, chosen, stays, pinned, racks or {}, with_power=caps)
    power = None
    if caps:
        drowsy = range(len(round.cluster.topology.node_gpus)) if may_sleep else round.asleep
        power = RackPower(round, drowsy)
        for job in pinned:
            power.take(chosen[job], round.held[job].placement)
    jobs = list(chosen)
    by_book, usable = concerns_nodes(round), dict[int, Mask]()
    costly = set() if room is None else {o for o, job in enumerate(jobs) if job in room.cost}
    placements: dict[str, tuple[Piece, ...]] = {}
    parts: dict[str, Places] = {}
    for pool, requests in sorted(asked.items()):
        nodes = pool_nodes(round.cluster, pool, round.asleep)
        if awake is not None and pool in awake:
            nodes = nodes.copy()
            nodes.usable = _worth_keeping(nodes, requests, awake[pool], costly)
            usable[pool] = np.zeros(len(round.cluster.topology.node_gpus), dtype=bool)
            usable[pool][[*bits(nodes.in_cluster(nodes.usable))]] = True
        if by_book:
            continue
        if room is None:
            packing = pack(nodes, requests, power)
        else:
            allows = partial(_allows, room, jobs)
            packing = pack(nodes, requests, power, Staying(costly, allows))
            room = room.after(jobs[order] for order in packing.moved(requests))
        power, names = packing.power, nodes.nodes
        for order, pieces in packing.at.items():
            on = [(names[node], gpus) for node, gpus in pieces]
            placements[jobs[order]] = tuple(sorted(on) if len(on) > 1 else on)
    if by_book:
        seats = [
            SeatedJob(
                k,
                states[job],
                option,
                kept.placement if (kept := stays.get(job)) else (),
                job in pinned,
                (racks or {}).get(job, -1),
            )
            for k, (job, option) in enumerate(chosen.items())
        ]
        at, book = seated(round, seats, usable, power)
        placements = {jobs[k]: there for k, there in at.items()}
        parts = {job: own for job in placements if (own := book.parts(job))}
    fields: dict[str, Any] = {"may_sleep": may_sleep, "awake": awake or {}}
    placed = assemble(round, chosen, held, placements, parts, **fields)
    if by_book and room is not None and not room.allows((*placed.moved, *placed.unplaced)):
        return place(round, chosen, migrate=False, racks=racks, **fields)
    return placed


def _allows(room: MoveRoom, jobs: Sequence[str], moved: Iterable[int]) -> bool:
    return room.allows(jobs[order] for order in moved)


def _requests(
    round: Round,
    chosen: Mapping[str, Option],
    stays: Mapping[str, Allocation | None],
    pinned: Collection[str],
    racks: Mapping[str, int],
    *,
    with_power: bool,
) -> dict[int, list[PoolRequest]]:
    """Return the requests of jobs per pool, the most important first; watts only `with_power`."""
    # In a single pool with all nodes in service these are numbered as in the cluster.
    one_pool = len(round.cluster.topology.pools) == 1 and not round.cluster.out
    position = [nodes.position for nodes in free_lists(round.cluster)]
    asked: dict[int, list[PoolRequest]] = {}
    for order, (job, option) in enumerate(watched(chosen.items())):
        kept = stays.get(job)
        there = () if kept is None else kept.placement
        request = PoolRequest(
            order,
            option.gpus,
            option.span,
            extra_gpu_w(round, option) if with_power else 0.0,
            there if one_pool else tuple([(position[option.pool][n], g) for n, g in there]),
            job in pinned,
            racks.get(job, -1),
        )
        asked.setdefault(option.pool, []).append(request)
    return asked


def _worth_keeping(
    nodes: PoolNodes, requests: Iterable[PoolRequest], count: int, costly: Collection[int]
) -> int:
    """Return the `count` nodes that are best kept awake, with all nodes of pinned jobs among them.

    So are those of jobs whose moves are `costly` (orders).

    Nodes with many running jobs come first, then nodes with many GPUs in use, then awake nodes, and
    then large nodes.
    """
    jobs, gpus, pinned = [0] * len(nodes.nodes), [0] * len(nodes.nodes), set[int]()
    for request in requests:
        for node, number in request.held:
            jobs[node] += 1
            gpus[node] += number
            if request.pinned or request.order in costly:
                pinned.add(node)
    ranked = sorted(
        range(len(nodes.nodes)),
        key=lambda n: (n not in pinned, -jobs[n], -gpus[n], ~nodes.awake >> n & 1, -nodes.size[n]),
    )
    return bits_of(ranked[: max(count, len(pinned))])
