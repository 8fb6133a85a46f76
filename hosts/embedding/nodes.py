"""Changes of machines: nodes are lost, drained, back or new, or the whole cluster is replaced."""

from collections.abc import Sequence
from typing import Literal, get_args

from msgspec.structs import replace

from ronda.horizon.nodes import out_of_service
from ronda.hosts.embedding.live import Tracked, failed, stopped
from ronda.hosts.embedding.plain import amount, by_name
from ronda.hosts.embedding.records import Settings, State
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, used_nodes
from ronda.instances.rules.problem import one_of, show

Word = Literal["lost", "drained", "back"]
NodeNews = Word | float
"""What a host says of a node; a number is the time at which the node will go out of service."""

NEWS: tuple[str, ...] = get_args(Word)


def with_nodes(cluster: Cluster, names: Sequence[str], added: object) -> tuple[Cluster, list[str]]:
    """Return a cluster with new nodes, and all names; `added` maps new nodes to group names."""
    new: dict[str, list[str]] = {group.name: [] for group in cluster.node_groups}
    for node, group in by_name(added, "nodes_added").items():
        place = f"nodes_added: node {show(node)}"
        if not isinstance(node, str) or node in names:
            raise InputError(place, "a node of the cluster", "a name that is new")
        if not isinstance(group, str) or group not in new:
            raise InputError(place, show(group), f"the group that it is like, {one_of(list(new))}")
        new[group].append(node)
    old, found = iter(names), list[str]()
    for group in cluster.node_groups:
        found += [next(old) for _ in range(group.count)] + new[group.name]
    number = {name: k for k, name in enumerate(found)}
    out = tuple((number[names[node]], gpus) for node, gpus in cluster.out)
    taken = tuple((number[names[node]], *what) for node, *what in cluster.taken)
    groups = (replace(g, count=g.count + len(new[g.name])) for g in cluster.node_groups)
    return replace(cluster, node_groups=tuple(groups), out=out, taken=taken), found


def tell_nodes(state: State, settings: Settings, told: object) -> None:
    """Apply events of nodes to a state; jobs on lost nodes go back to their last checkpoint."""
    number = settings.number
    state.service, state.leaving = dict(state.service), dict(state.leaving)
    for name, word in by_name(told, "nodes").items():
        place = f"nodes: node {show(name)}"
        if not isinstance(name, str) or name not in number:
            near = one_of(settings.node_names, name if isinstance(name, str) else None)
            raise InputError(place, "no node of the cluster", near)
        known = isinstance(word, str) and word in NEWS
        time_s = None if known else amount(word, place, f"{one_of(NEWS)}, or a time in seconds")
        if time_s is not None:
            if name in state.service:
                raise InputError(place, f"a node that is {state.service[name]}", "one in service")
            state.leaving[name] = time_s
            continue
        before, leaves = state.service.pop(name, None), state.leaving.pop(name, None)
        if word == "back":
            if before is None and leaves is None:
                raise InputError(place, "a node in service", "one that is lost or drained")
            continue
        if word == "drained" and before == "lost":
            raise InputError(place, "a node that is lost", "one in service")
        state.service[name] = "lost" if word == "lost" else "drained"
        for job, of in state.jobs.items() if word == "lost" else ():
            held = of.state.allocation or of.leaves
            if held is not None and number[name] in dict(held.placement):
                state.jobs[job] = failed(of, state.now_s, settings.costs)


def settle(state: State, settings: Settings) -> tuple[tuple[int, int], ...]:
    """Keep jobs on drained nodes in place, and return the GPUs out of service, keyed by node.

    As in a run, a drained node keeps only its present jobs and is off once they have left. No
    policy may move these jobs, because others could take their place.
    """
    named = enumerate(settings.node_names)
    words = {k: state.service[name] for k, name in named if name in state.service}
    drained = {node for node, word in words.items() if word == "drained"}
    held = state.held
    for job, of in state.jobs.items():
        stays = job in held and any(node in drained for node, _ in held[job].placement)
        free = of.given.job.preemptible and not stays
        if of.state.job.preemptible != free:
            shown = replace(of.state, job=replace(of.state.job, preemptible=free))
            state.jobs[job] = replace(of, state=shown)
    off = (words.keys() - drained) | (drained - used_nodes(held.values()))
    state.asleep = tuple(node for node in state.asleep if node not in off)
    state.ready_s = {node: at for node, at in state.ready_s.items() if node not in off}
    if not words:
        return settings.cluster.out
    gpus = [g.gpus_per_node for g in settings.cluster.node_groups for _ in range(g.count)]
    gone = dict(settings.cluster.out) | dict(out_of_service(gpus, off, drained, held))
    return tuple(sorted(gone.items()))


def moved(state: State, before: Settings, after: Settings) -> None:
    """Move a state to new machines, whose nodes are matched by name.

    A job stops if one of its nodes is gone, is too small for the jobs on it, or has another GPU
    type now. Preemptible jobs stop first.
    """
    number, old, new = after.number, before.cluster.topology, after.cluster.topology
    place = {k: number[name] for name, k in before.number.items() if name in number}
    room = new.node_gpus.tolist()

    def kept(of: Tracked, held: Allocation) -> Tracked:
        """Return a job that goes on running on the same nodes, or stops."""
        found = [(place[node], gpus) for node, gpus in held.placement if node in place]
        pools = {int(new.node_pool[node]) for node, _ in found}
        fits = len(pools) == 1 and all(gpus <= room[node] for node, gpus in found)
        if len(found) < len(held.placement) or not fits:
            return stopped(of, state.now_s)
        pool = pools.pop()
        one, other = old.pools[held.option.pool], new.pools[pool]
        if (one.partition, one.gpu_type.name) != (other.partition, other.gpu_type.name):
            return stopped(of, state.now_s)
        for node, gpus in found:
            room[node] -= gpus
        option = replace(held.option, pool=pool)
        allocation = replace(held, option=option, placement=tuple(found))
        return replace(of, state=replace(of.state, allocation=allocation))

    firm_first = sorted(state.jobs.items(), key=lambda item: item[1].state.job.preemptible)
    for job, of in firm_first:
        known = replace(of, profile=after.unrated.get(of.profile.name, of.profile))
        held = of.state.allocation
        state.jobs[job] = known if held is None else kept(known, held)
    state.asleep = tuple(sorted(place[node] for node in state.asleep if node in place))
    state.ready_s = {place[node]: at for node, at in state.ready_s.items() if node in place}
    state.service = {name: word for name, word in state.service.items() if name in number}
    state.leaving = {name: at_s for name, at_s in state.leaving.items() if name in number}
    state.plan = None  # it refers to the old nodes
