"""Rules for the sizes and shapes of jobs, their nodes and slices, and their neighbourhoods."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product

from ronda.instances.check.site.shapes import racks_at
from ronda.instances.cluster import Cluster
from ronda.instances.job import Job, Slices
from ronda.instances.rules.jobs import Places, at
from ronda.instances.rules.problem import Problem, one_of, show
from ronda.instances.site import Neighbourhood, Site

Found = Iterator[tuple[str, str, str]]
"""Fields of a job with the found and the expected value."""


class JobNodes:
    """The nodes of a cluster in full, and those that jobs may use."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.groups = [group for group in cluster.node_groups for _ in range(group.count)]
        self._known: dict[tuple[object, ...], list[int]] = {}

    @cached_property
    def racks(self) -> dict[str, list[str | None]]:
        """The rack of each node at each level."""
        levels = sorted({rack.level for rack in self.cluster.racks})
        return {level: racks_at(self.cluster, level) for level in levels}

    def of(self, job: Job, *, named: bool = False, labelled: bool = False) -> list[int]:
        """Return the nodes of a job's partition and GPU types, that it names, with its features."""
        nodes, labels = job.nodes if named else (), job.features if labelled else ()
        key = (job.partition, job.gpu_types, nodes, labels)
        if key not in self._known:
            only, needed = set(nodes or range(len(self.groups))), set(labels)
            self._known[key] = [
                n
                for n, group in enumerate(self.groups)
                if group.partition == job.partition
                and (not job.gpu_types or group.gpu_type in job.gpu_types)
                and n in only
                and needed <= set(group.features)
            ]
        return self._known[key]


def neighbourhood_problems(
    site: Site, jobs: Sequence[Job], places: Places, cluster: Cluster
) -> Iterator[Problem]:
    """Yield the neighbourhoods without a place, or that contradict another for the same jobs."""
    nodes = JobNodes(cluster)
    rules, known = {rule.name: rule for rule in site.neighbourhoods}, ["node", *nodes.racks]
    for k, rule in enumerate(site.neighbourhoods):
        if rules[rule.name] is not rule:
            yield Problem(f"site.neighbourhoods[{k}].name", show(rule.name), "unique names")
        if rule.within not in known:
            yield Problem(f"site.neighbourhoods[{k}].within", show(rule.within), one_of(known))
            return
    first = dict[tuple[str, str], int]()
    for k, job in enumerate(jobs):
        unknown = [name for name in job.neighbourhoods if name not in rules]
        if unknown:
            place = at(places, k, ".neighbourhoods", job)
            yield Problem(place, show(unknown[0]), one_of(sorted(rules)))
            continue
        for one, other in product(job.neighbourhoods, repeat=2):
            if _contradict(rules[one], rules[other], nodes) and (one, other) in first:
                found = f"together by {show(one)} and apart by {show(other)}"
                expected = f"one of both: {show(jobs[first[one, other]].id)} is in them too"
                yield Problem(at(places, k, ".neighbourhoods", job), found, expected)
            first.setdefault((one, other), k)


def _contradict(together: Neighbourhood, apart: Neighbourhood, nodes: JobNodes) -> bool:
    """Return whether jobs that keep the first rule cannot keep the second."""
    if (together.rule, apart.rule) != ("together", "apart"):
        return False
    if "node" in (together.within, apart.within):  # jobs of one rack may be on several nodes
        return together.within == "node"
    if together.within == apart.within:
        return True
    pairs = set(zip(nodes.racks[together.within], nodes.racks[apart.within], strict=True))
    return len(pairs) == len({inner for inner, _ in pairs})


def shape_problems(jobs: Sequence[Job], places: Places, cluster: Cluster) -> Iterator[Problem]:
    """Yield the sizes and shapes that jobs cannot have on a (consistent) cluster in full."""
    nodes = JobNodes(cluster)
    for k, job in enumerate(jobs):
        if job.pieces is not None and job.gpus % job.pieces.count:
            expected = f"a number that divides the {job.gpus} GPUs"
            yield Problem(at(places, k, ".pieces.count", job), str(job.pieces.count), expected)
        alone = job.one_node or job.exclusive or job.slices is not None
        if alone or job.sizes or job.nodes or job.features:
            for field, found, expected in _odd(job, nodes):
                yield Problem(at(places, k, field, job), found, expected)


def _odd(job: Job, nodes: JobNodes) -> Found:
    least, most = job.min_gpus or job.gpus, job.max_gpus or job.gpus
    outside = [n for n in job.sizes if not least <= n <= most]
    if outside:
        yield ".sizes", str(outside[0]), f"sizes from {least} to {most}, as it may have"
    elif job.sizes and job.gpus not in job.sizes:
        yield ".sizes", show(job.sizes), f"the {job.gpus} GPUs that it asks for among them"
    absent = [node for node in job.nodes if node >= len(nodes.groups)]
    every, named = nodes.of(job), nodes.of(job, named=True)
    able = nodes.of(job, named=True, labelled=True)
    if absent:
        yield ".nodes", str(absent[0]), f"a node, 0 to {len(nodes.groups) - 1}"
    elif every and not named:
        yield ".nodes", show(job.nodes), "some of its partition and GPU types"
    elif named and not able:
        labels = sorted({label for n in named for label in nodes.groups[n].features})
        yield ".features", show(job.features), f"what one of its nodes has, {one_of(labels)}"
    if not able:
        return  # a partition or GPU type without nodes is told elsewhere
    sizes = [nodes.groups[n].gpus_per_node for n in able]
    if job.gpus > sum(sizes) and (job.nodes or job.features):
        yield ".gpus", str(job.gpus), f"at most {sum(sizes)}, on the nodes that it may use"
    if job.one_node and job.gpus > max(sizes):
        yield ".one_node", f"{job.gpus} GPUs", f"at most {max(sizes)}, on its largest node"
    if job.exclusive and job.fusible is not None:
        yield ".exclusive", "nodes of its own for a fusible job", "one of both"
    if job.slices is not None:
        yield from _slices(job, job.slices, sorted(set(sizes)), able, nodes.racks)


def _slices(
    job: Job,
    slices: Slices,
    wholes: list[int],
    able: list[int],
    racks: Mapping[str, list[str | None]],
) -> Found:
    ways = bool(slices.listed) + slices.balanced + (slices.nodes is not None)
    if ways != 1:
        yield ".slices", f"{ways} of nodes, listed and balanced", "one of them"
        return
    for name in ("within", "together"):
        level = getattr(slices, name)
        if level is not None and level not in racks:
            yield f".slices.{name}", show(level), one_of(list(racks))
            return
    counts = Counter(racks[slices.within][n] for n in able)
    room = max((n for rack, n in counts.items() if rack is not None), default=0)
    size = max(slices.listed, default=slices.nodes or 1)
    if size > room:
        expected = f"at most {room}, its nodes in the largest {slices.within}"
        yield ".slices", f"a slice of {size} nodes", expected
        return
    for gpus in (job.gpus, *job.sizes):
        nodes = [-(-gpus // whole) for whole in wholes if job.exclusive or gpus % whole == 0]
        if not any(n == sum(slices.listed) if slices.listed else n % size == 0 for n in nodes):
            many = f"{sum(slices.listed)}" if slices.listed else f"a multiple of {size}"
            per_node = " or ".join(map(str, wholes))
            yield ".slices", f"{gpus} GPUs", f"{many} whole nodes of {per_node} GPUs"
            return
