"""From options to nodes: realise what a policy chose, moving as little as possible."""

from collections.abc import Collection, Iterable, Mapping

from ronda.formulations.bit_sets import bits_of
from ronda.formulations.models.power import extra_gpu_w
from ronda.formulations.placement.answer import Placed, as_they_are, assemble, unchanged
from ronda.formulations.placement.nodes import Piece, PoolNodes, PoolRequest, free_lists, pool_nodes
from ronda.formulations.placement.repack import pack
from ronda.formulations.watts.racks import RackPower, capped
from ronda.instances.job import Allocation, Option
from ronda.instances.round import Round


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
    """Put every chosen option on nodes; nodes are given in ascending order.

    A running job whose option has not changed (but for its expected rate) keeps its very
    `Allocation` object, unless a larger job needs the room. Options below a node go to the fullest
    node that fits, larger ones take whole nodes in as few racks as possible and put the remainder
    on one more node; nodes in use are preferred to idle ones, and those to sleeping ones. For GPU
    counts that divide each other and the node size everything is placed whenever the GPUs suffice
    (see `ronda.formulations.placement.packing`). Racks' power caps are respected.

    Parameters
    ----------
    chosen
        Options by job id, the most important first: the last ones are left out if room does not
        suffice. Running jobs that are not in it stop.
    may_sleep, awake
        Whether nodes that no job uses are put to sleep; how many of a pool (by index) are then
        awake. Jobs are squeezed into these. Pools not named keep no idle node awake.
    migrate
        Whether running jobs whose option has not changed may move to make room.
    yielding
        Running jobs that give up their nodes before others are placed; they may end there again.
    racks
        Jobs of span "rack" that are placed first, each in this rack (index) if it has room.

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
        return as_they_are(round, still)
    power = None
    if caps:
        drowsy = range(len(round.cluster.topology.node_gpus)) if may_sleep else round.asleep
        power = RackPower(round.cluster, drowsy)
    pinned = {
        job for job, kept in held.items() if kept and not (migrate and states[job].job.preemptible)
    }
    stays = {job: kept for job, kept in held.items() if job in pinned or job not in yielding}
    asked = _requests(round, chosen, stays, pinned, racks or {}, with_power=caps)
    jobs = list(chosen)
    placements: dict[str, tuple[Piece, ...]] = {}
    for pool, requests in sorted(asked.items()):
        nodes = pool_nodes(round.cluster, pool, round.asleep)
        if awake is not None and pool in awake:
            nodes = nodes.copy()
            nodes.usable = _worth_keeping(nodes, requests, awake[pool])
        packing = pack(nodes, requests, power)
        power, names = packing.power, nodes.nodes
        for order, pieces in packing.at.items():
            placements[jobs[order]] = tuple(sorted([(names[node], gpus) for node, gpus in pieces]))
    return assemble(round, chosen, held, placements, may_sleep=may_sleep, awake=awake or {})


def _requests(
    round: Round,
    chosen: Mapping[str, Option],
    stays: Mapping[str, Allocation | None],
    pinned: Collection[str],
    racks: Mapping[str, int],
    *,
    with_power: bool,
) -> dict[int, list[PoolRequest]]:
    """Return what jobs ask of each pool, the most important first; watts only if they matter."""
    one_pool = len(round.cluster.topology.pools) == 1  # in it nodes are numbered as in the cluster
    position = [nodes.position for nodes in free_lists(round.cluster)]
    asked: dict[int, list[PoolRequest]] = {}
    for order, (job, option) in enumerate(chosen.items()):
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


def _worth_keeping(nodes: PoolNodes, requests: Iterable[PoolRequest], count: int) -> int:
    """Return the `count` nodes that are best kept awake, and all that pinned jobs are on.

    Nodes with many running jobs come first, then those with many GPUs in use, awake and large ones.
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
        key=lambda n: (n not in pinned, -jobs[n], -gpus[n], ~nodes.awake >> n & 1, -nodes.size[n]),
    )
    return bits_of(ranked[: max(count, len(pinned))])
