"""From options to nodes: realise what a policy chose, moving as little as possible."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ronda.formulations.pieces import Piece, Request
from ronda.formulations.placed import Placed, assemble, unchanged
from ronda.formulations.pool_nodes import PoolNodes
from ronda.formulations.power import extra_gpu_w
from ronda.formulations.rack_power import RackPower, capped
from ronda.formulations.repack import pack
from ronda.instances.instance import Round
from ronda.instances.job import Allocation, JobState, Option


def place(
    round: Round,
    chosen: Mapping[str, Option],
    *,
    may_sleep: bool = False,
    awake: Mapping[int, int] | None = None,
    migrate: bool = True,
    yielding: Collection[str] = (),
    racks: Mapping[str, int] | None = None,
) -> Placed:
    """Put every chosen option on nodes.

    A running job whose option has not changed (but for its expected rate) keeps its very
    `Allocation` object, unless a larger job needs the room. Options below a node go to the fullest
    node that fits, larger ones take whole nodes in as few racks as possible and put the remainder
    on one more node; nodes in use are preferred to idle ones, and those to sleeping ones. For GPU
    counts that divide each other and the node size everything is placed whenever the GPUs suffice
    (see `ronda.formulations.block_packing`). Racks' power caps are respected.

    Parameters
    ----------
    round
        The round.
    chosen
        Options by job id, the most important first: should the room not suffice, the last ones
        are left out. Running jobs that are not in it stop.
    may_sleep
        Whether nodes that no job uses are put to sleep.
    awake
        With `may_sleep`: how many nodes of a pool (by index) are awake afterwards. Jobs are
        squeezed into so many; those left over stay awake without a job. Pools that are not named
        keep no idle node awake.
    migrate
        Whether running jobs whose option has not changed may move to make room.
    yielding
        Running jobs that give up their nodes before others are placed; they may end there again.
        So it is the caller who says who makes room for larger jobs, rather than the fewest.
    racks
        Jobs of span "rack" that are placed first, each in its rack (index in the topology) if there
        is room, else in another one.

    Returns
    -------
    Placed
        Nodes are given in ascending order.

    Raises
    ------
    ValueError
        If a job is not live in the round, or `awake` is given without `may_sleep`.
    """
    if awake and not may_sleep:
        raise ValueError("a number of nodes to be awake needs may_sleep")
    states = {state.job.id: state for state in round.jobs}
    unknown = [job for job in chosen if job not in states]
    if unknown:
        raise ValueError(f"jobs that are not live in the round: {', '.join(unknown)}")
    held = {job: unchanged(states[job], option) for job, option in chosen.items()}
    caps, moving = capped(round.cluster), may_sleep or bool(yielding)
    if not moving and not caps and (still := _as_they_are(held)) is not None:
        return assemble(round, chosen, held, still, may_sleep=False, awake={})
    topology = round.cluster.topology
    jobs, by_pool = list(chosen), defaultdict(list)
    for order, option in enumerate(chosen.values()):
        by_pool[option.pool].append(order)
    power = None
    if caps:
        drowsy = range(len(topology.node_gpus)) if may_sleep else round.asleep
        power = RackPower(round.cluster, drowsy)
    placements: dict[str, tuple[Piece, ...]] = {}
    for pool, orders in sorted(by_pool.items()):
        nodes = PoolNodes(topology, pool, round.asleep)
        position = {node: i for i, node in enumerate(nodes.nodes)}
        requests = [
            _request(
                order, jobs[order], chosen[jobs[order]], held, states, position, round, migrate
            )
            for order in orders
        ]
        requests = [
            replace(r, held=()) if not r.pinned and jobs[r.order] in yielding else r
            for r in requests
        ]
        if racks:
            requests = [replace(r, rack=racks.get(jobs[r.order], -1)) for r in requests]
        if awake is not None and pool in awake:
            nodes.usable = _worth_keeping(nodes, requests, awake[pool])
        packing = pack(nodes, requests, power)
        power = packing.power
        for order, pieces in packing.at.items():
            named = ((nodes.nodes[node], gpus) for node, gpus in pieces)
            placements[jobs[order]] = tuple(sorted(named))
    return assemble(round, chosen, held, placements, may_sleep=may_sleep, awake=awake or {})


def _as_they_are(
    held: Mapping[str, Allocation | None],
) -> dict[str, tuple[Piece, ...]] | None:
    """Return the nodes that all jobs are on if all just go on; None if one does not."""
    still: dict[str, tuple[Piece, ...]] = {}
    for job, kept in held.items():
        if kept is None:
            return None
        still[job] = tuple(sorted(kept.placement))
    return still


def _request(
    order: int,
    job: str,
    option: Option,
    held: Mapping[str, Allocation | None],
    states: Mapping[str, JobState],
    position: Mapping[int, int],
    round: Round,
    migrate: bool,
) -> Request:
    """Return what a job asks of its pool."""
    kept = held[job]
    return Request(
        order=order,
        gpus=option.gpus,
        span=option.span,
        extra_w=extra_gpu_w(round, option),
        held=() if kept is None else tuple((position[n], g) for n, g in kept.placement),
        pinned=kept is not None and not (migrate and states[job].job.preemptible),
    )


def _worth_keeping(nodes: PoolNodes, requests: Iterable[Request], count: int) -> int:
    """Return the `count` nodes that are best kept awake, and all that pinned jobs are on.

    Nodes with many running jobs come first (each would have to move), then those with many GPUs
    in use, those that are awake, and large ones.
    """
    jobs, gpus, pinned = [0] * len(nodes.nodes), [0] * len(nodes.nodes), set[int]()
    for request in requests:
        for node, number in request.held:
            jobs[node] += 1
            gpus[node] += number
            if request.pinned:
                pinned.add(node)
    ranked = sorted(
        range(len(nodes.nodes)),
        key=lambda n: (
            n not in pinned,
            -jobs[n],
            -gpus[n],
            not nodes.awake >> n & 1,
            -nodes.size[n],
            n,
        ),
    )
    mask = 0
    for node in ranked[: max(count, len(pinned))]:
        mask |= 1 << node
    return mask
