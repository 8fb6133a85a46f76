"""Rules for the resources of hosts and for licences: what is there, taken, and needed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ronda.instances.cluster import Cluster, NodeGroup
from ronda.instances.job import Job, Need
from ronda.instances.profile import Profile
from ronda.instances.rules.jobs import Places, at
from ronda.instances.rules.problem import Problem, one_of, show

SLACK = 1 + 1e-9
"""The factor on what nodes have that allows for rounding."""


def taken_problems(cluster: Cluster, *, now: bool) -> Iterator[Problem]:
    """Yield the inconsistencies in what others hold; `now`, in a round, they may hold too much."""
    groups = [group for group in cluster.node_groups for _ in range(group.count)]
    names = host_names(cluster)
    sums: defaultdict[tuple[int, str], float] = defaultdict(float)
    for k, (node, name, amount) in enumerate(cluster.taken):
        place = f"cluster.taken[{k}]"
        if node >= len(groups):
            yield Problem(place, f"node {node}", f"a node, 0 to {len(groups) - 1}")
        elif name not in names:
            yield Problem(place, show(name), one_of(names, name))
        else:
            sums[node, name] += amount
            has = groups[node].has.get(name, 0.0)
            if not now and sums[node, name] > has * SLACK:
                found = f"{sums[node, name]:g} of {name} on node {node}"
                yield Problem(place, found, f"at most the {has:g} that it has")
    for name, count in cluster.licences_taken.items():
        place, total = f"cluster.licences_taken.{name}", cluster.licences.get(name)
        if total is None:
            yield Problem(place, show(name), one_of(list(cluster.licences), name))
        elif not now and count > total:
            yield Problem(place, str(count), f"at most the {total} that there are")


def host_names(cluster: Cluster) -> list[str]:
    """Return the names of the resources that hosts have."""
    return list(dict.fromkeys(name for group in cluster.node_groups for name in group.has))


def need_problems(
    jobs: Sequence[Job], places: Places, profiles: Mapping[str, Profile], cluster: Cluster
) -> Iterator[Problem]:
    """Yield the jobs with needs that no nodes of a whole cluster can meet, whoever else runs."""
    names = host_names(cluster)
    alike: dict[tuple[str, str], Job] = {}
    for k, job in enumerate(jobs):
        if job.fusible is not None:
            first = alike.setdefault((job.fusible, job.profile), job)
            if (job.needs, job.licences) != (first.needs, first.licences):
                found = f"other needs or licences than job {show(first.id)} of its class"
                yield Problem(at(places, k, ".fusible", job), found, "the same: they share GPUs")
        for name, count in job.licences.items():
            total = cluster.licences.get(name)
            place = at(places, k, f".licences.{name}", job)
            if total is None:
                yield Problem(place, show(name), one_of(list(cluster.licences), name))
            elif count > total:
                yield Problem(place, str(count), f"at most the {total} that there are")
        for name, need in job.needs.items() if names else ():
            place = at(places, k, f".needs.{name}", job)
            if name not in names:
                yield Problem(place, show(name), one_of(names, name))
            else:
                known = profiles[job.profile].throughput if job.profile in profiles else ()
                types = set(job.gpu_types or known)
                yield from _never(job, name, need, place, cluster, types)


def _never(
    job: Job, name: str, need: Need, place: str, cluster: Cluster, types: set[str]
) -> Iterator[Problem]:
    """Yield the problem of a need that the pieces of a job find on no node, at any size."""
    nearest: tuple[float, float] | None = None
    pools: defaultdict[str, list[NodeGroup]] = defaultdict(list)
    for group in cluster.node_groups:
        if group.partition == job.partition and group.gpu_type in types:
            pools[group.gpu_type].append(group)
    for groups in pools.values():
        for size in _sizes(job):
            short = _short(size, name, need, groups)
            if short is None:
                return
            if nearest is None or short[0] - short[1] < nearest[0] - nearest[1]:
                nearest = short
    if nearest is not None:
        found = f"{nearest[0]:g} on one node, the least that it can do with"
        yield Problem(place, found, f"at most {nearest[1]:g}, what such nodes have")


def _sizes(job: Job) -> Iterable[int]:
    """Return the numbers of GPUs that a job may have, first the one that it asks for."""
    least, most = job.min_gpus or job.gpus, job.max_gpus or job.gpus
    return dict.fromkeys([job.gpus, *(job.sizes or range(least, most + 1))])


def _short(size: int, name: str, need: Need, groups: list[NodeGroup]) -> tuple[float, float] | None:
    """Return the piece of a size that no node holds and the most that one has, or None if all fit.

    A job on more nodes of the largest kind than there are is cut in another way; it is not judged.
    """
    whole = max(group.gpus_per_node for group in groups)
    count, rest = divmod(size, whole)
    large = [group for group in groups if group.gpus_per_node == whole]
    if count > sum(group.count for group in large):
        return None
    pieces = [(whole, 0.0, count - (not rest)), (rest or whole, need.flat, 1)]
    for gpus, once, nodes in pieces:
        amount = need.per_gpu * gpus + need.per_node + once
        able = [g for g in groups if g.gpus_per_node >= gpus]
        enough = sum(g.count for g in able if amount <= g.has.get(name, 0.0) * SLACK)
        if enough < nodes:
            return amount, max(g.has.get(name, 0.0) for g in able)
    return None
