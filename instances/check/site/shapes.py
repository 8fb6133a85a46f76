"""The check of the nodes of a job: named nodes, one node, nodes of its own, slices, neighbours."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from ronda.instances.check.site.given import JobInPlan
from ronda.instances.cluster import Cluster
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Job, Slices
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.site import Neighbourhood, Site
from ronda.instances.violation import Violation


class _Stay(NamedTuple):
    """A time in which a job is on its nodes; `kept` if it was there before the rule applied."""

    job: Job
    on: tuple[tuple[int, int], ...]
    start_s: float = 0.0
    end_s: float = 1.0
    kept: bool = False
    array: str | None = None

    def meets(self, other: "_Stay") -> bool:
        """Return whether both are there at the same time, and not both were before."""
        if self.job.id == other.job.id or (self.kept and other.kept):
            return False
        return max(self.start_s, other.start_s) < min(self.end_s, other.end_s)


def shape_violations(round: Round, plan: Plan, given: list[JobInPlan]) -> list[Violation]:
    """Return the violations of the shapes of jobs by a plan."""
    if not any(_shaped(state.job) for state, _, _ in given):
        return []
    stays = [
        _Stay(state.job, held.placement, kept=kept, array=held.array)
        for state, held, kept in given
        if held is not None and _exist(round.cluster, held)
    ]
    return _violations(round.cluster, round.site, stays)


def schedule_shape_violations(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the violations of the shapes of jobs by a schedule."""
    if not any(map(_shaped, instance.jobs)):
        return []
    stays = [
        _Stay(job, own.placement, own.start_s, own.end_s, array=own.array)
        for job, outcome in zip(instance.jobs, schedule.jobs, strict=True)
        for own in outcome.segments
    ]
    return _violations(instance.cluster, instance.site, stays)


def _shaped(job: Job) -> bool:
    alone = job.one_node or job.exclusive or job.slices is not None
    return alone or bool(job.nodes or job.features or job.neighbourhoods)


def _exist(cluster: Cluster, held: Allocation) -> bool:
    nodes = sum(group.count for group in cluster.node_groups)
    return all(0 <= node < nodes for node, _ in held.placement)


def _violations(cluster: Cluster, site: Site, stays: list[_Stay]) -> list[Violation]:
    found = []
    for stay in stays:
        if not stay.kept:
            where = f"job {stay.job.id}"
            found += [Violation(code, where, message) for code, message in _own(cluster, stay)]
    return found + list(_intruders(cluster, stays)) + list(_neighbours(cluster, site, stays))


def _own(cluster: Cluster, stay: _Stay) -> Iterator[tuple[str, str]]:
    """Yield the faults of a job on its nodes, whoever else is there, as codes and messages."""
    job, nodes = stay.job, [node for node, _ in stay.on]
    groups = [group for group in cluster.node_groups for _ in range(group.count)]
    for node in nodes:
        if job.nodes and node not in job.nodes:
            yield "nodes", f"is on node {node}, not among those that it names"
        lacks = [label for label in job.features if label not in groups[node].features]
        if lacks:
            yield "nodes", f"is on node {node}, which lacks {lacks[0]!r}"
    if job.one_node and len(nodes) > 1:
        yield "one-node", f"is on {len(nodes)} nodes"
    if job.exclusive or job.slices is not None:
        parts = [n for n, gpus in stay.on if gpus != groups[n].gpus_per_node]
        if parts:
            code = "exclusive" if job.exclusive else "slices"
            yield code, f"holds only some of the GPUs of node {parts[0]}"
    if job.slices is not None:
        yield from (("slices", message) for message in _sliced(cluster, job.slices, nodes))


def _sliced(cluster: Cluster, slices: Slices, nodes: list[int]) -> Iterator[str]:
    racks = racks_at(cluster, slices.within)
    counts = Counter(racks[node] for node in nodes)
    if None in counts:
        yield f"has a node outside every {slices.within}"
        return
    number = sorted(counts.values(), reverse=True)
    size = slices.nodes
    if slices.listed:
        sizes = sorted(slices.listed, reverse=True)
        if not (sizes == number if slices.spread else _sums(sizes, number)):
            yield f"has {number} nodes in each {slices.within}, no sums of slices of {sizes}"
    elif slices.balanced:
        if number[0] - number[-1] > 1:
            yield f"has {number} nodes in each {slices.within}, which is not even"
    elif size is not None:
        if any(count % size for count in number):
            yield f"has {number} nodes in each {slices.within}, not in slices of {size}"
        elif slices.spread and number[0] > size:
            yield f"has {number[0] // size} slices in one {slices.within}, which are to spread"
    if slices.together is not None:
        above = racks_at(cluster, slices.together)
        wide = {above[node] for node in nodes}
        if len(wide) > 1 or None in wide:
            yield f"is not within one {slices.together}"


def _sums(sizes: list[int], number: list[int]) -> bool:
    """Return whether the sizes, each used once, can be grouped into sums equal to the numbers."""
    if not sizes or not number:
        return not sizes and not any(number)
    first, rest = sizes[0], sizes[1:]
    return any(
        _sums(rest, [*number[:k], each - first, *number[k + 1 :]])
        for k, each in enumerate(number)
        if each >= first and each not in number[:k]
    )


def racks_at(cluster: Cluster, level: str) -> list[str | None]:
    """Return the innermost rack of a level that holds each node, or None."""
    racks = {rack.name: rack for rack in cluster.racks}

    def above(name: str | None) -> str | None:
        while name is not None and racks[name].level != level:
            name = racks[name].parent
        return name

    return [above(group.rack) for group in cluster.node_groups for _ in range(group.count)]


def _intruders(cluster: Cluster, stays: list[_Stay]) -> Iterator[Violation]:
    """Yield the jobs on nodes that another job has to itself."""
    if not any(stay.job.exclusive for stay in stays):
        return
    on = defaultdict[int, list[_Stay]](list)
    for stay in stays:
        for node, _ in stay.on:
            on[node].append(stay)
    for node, there in on.items():
        for one, other in combinations(there, 2):
            if (one.job.exclusive or other.job.exclusive) and one.meets(other):
                owner, guest = (one, other) if one.job.exclusive else (other, one)
                message = f"is on node {node}, which job {owner.job.id} has to itself"
                yield Violation("exclusive", f"job {guest.job.id}", message)


def _neighbours(cluster: Cluster, site: Site, stays: list[_Stay]) -> Iterator[Violation]:
    """Yield the jobs that are apart from those that they are to be with, or together."""
    for rule in site.neighbourhoods:
        own = [stay for stay in stays if rule.name in stay.job.neighbourhoods]
        of = None if rule.within == "node" else racks_at(cluster, rule.within)
        at = [{node if of is None else of[node] for node, _ in stay.on} for stay in own]
        for i, stay in enumerate(own):
            if rule.rule == "together" and not stay.kept and (len(at[i]) > 1 or None in at[i]):
                message = f"is not within one {rule.within}, as {rule.name} is to be"
                yield Violation("neighbours", f"job {stay.job.id}", message)
            for k in range(i):
                if own[k].meets(stay) and (odd := _odd(rule, at[i], at[k])):
                    message = f"is {odd} job {own[k].job.id}, against {rule.name}"
                    yield Violation("neighbours", f"job {stay.job.id}", message)


def _odd(rule: Neighbourhood, at: Iterable[object], other: Iterable[object]) -> str:
    shared = (set(at) & set(other)) - {None}
    if rule.rule == "apart":
        return f"in one {rule.within} with" if shared else ""
    return "" if set(at) == set(other) else f"not in one {rule.within} with"
