"""Other machines from now on: what runs on nodes that are still there goes on."""

from collections.abc import Mapping

from msgspec.structs import replace

from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation
from ronda.solvers.embedding.jobs import UNTOLD, unknown_profile
from ronda.solvers.embedding.live import Tracked, stopped
from ronda.solvers.embedding.records import Settings, State


def moved(state: State, before: Settings, after: Settings) -> None:
    """Let a state go on on other machines, whose nodes are known by their names.

    A job stops that holds a node that is gone, that is too small for what runs on it, or that is of
    another GPU type now; jobs that may be stopped first.
    """
    number = {name: k for k, name in enumerate(after.node_names)}
    place = {k: number[name] for k, name in enumerate(before.node_names) if name in number}
    untold = unknown_profile(after.cluster)
    room = after.cluster.topology.node_gpus.tolist()
    firm_first = sorted(state.jobs.items(), key=lambda item: item[1].state.job.preemptible)
    for job, of in firm_first:
        kept = of if of.profile.name != UNTOLD else replace(of, profile=untold)
        if of.state.allocation is not None:
            kept = _kept(
                kept, of.state.allocation, before.cluster, after.cluster, place, room, state.now_s
            )
        state.jobs[job] = kept
    state.asleep = tuple(sorted(place[node] for node in state.asleep if node in place))
    state.ready_s = {place[node]: at for node, at in state.ready_s.items() if node in place}
    state.plan = None  # it speaks of the nodes of before


def _kept(
    of: Tracked,
    held: Allocation,
    before: Cluster,
    after: Cluster,
    place: Mapping[int, int],
    room: list[int],
    now_s: float,
) -> Tracked:
    """Return a job that goes on on the same nodes, whose free GPUs are `room`, or stops."""
    old, new = before.topology, after.topology
    nodes = [(place.get(node), gpus) for node, gpus in held.placement]
    found = [(node, gpus) for node, gpus in nodes if node is not None]
    pools = {int(new.node_pool[node]) for node, _ in found}
    fits = all(gpus <= room[node] for node, gpus in found)
    if len(found) < len(nodes) or len(pools) != 1 or not fits:
        return stopped(of, now_s)
    pool = pools.pop()
    one, other = old.pools[held.option.pool], new.pools[pool]
    if (one.partition, one.gpu_type.name) != (other.partition, other.gpu_type.name):
        return stopped(of, now_s)
    for node, gpus in found:
        room[node] -= gpus
    option = replace(held.option, pool=pool)
    allocation = replace(held, option=option, placement=tuple(found))
    return replace(of, state=replace(of.state, allocation=allocation))
