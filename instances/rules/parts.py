"""Rules for parts of GPUs: what a cluster may offer, and what jobs may ask for."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ronda.instances.check.parts import crowded
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Parts
from ronda.instances.job import Allocation, Job
from ronda.instances.models.parts import arranged
from ronda.instances.profile import Profile
from ronda.instances.rules.jobs import Places, at
from ronda.instances.rules.problem import Problem, one_of, show


def part_problems(cluster: Cluster) -> Iterator[Problem]:
    """Yield the inconsistencies in the ways to cut the GPUs of a (consistent) cluster."""
    for k, gpu_type in enumerate(cluster.gpu_types):
        if gpu_type.parts is not None:
            yield from _profiles(gpu_type.parts, f"cluster.gpu_types[{k}].parts")
    types = {t.name: t for t in cluster.gpu_types}
    for k, group in enumerate(cluster.node_groups):
        yield from _group(group, types[group.gpu_type], f"cluster.node_groups[{k}]")


def _profiles(parts: Parts, place: str) -> Iterator[Problem]:
    names = [p.name for p in parts.profiles]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield Problem(f"{place}.profiles", f"the name {show(name)} twice", "unique names")
    for k, profile in enumerate(parts.profiles):
        at_k, last = f"{place}.profiles[{k}]", parts.memory - profile.memory
        for field, most in (("compute", parts.compute), ("memory", parts.memory)):
            has = getattr(profile, field)
            if has > most:
                yield Problem(f"{at_k}.{field}", f"{has} slices", f"at most the GPU's {most}")
        starts = profile.starts
        ascending = all(a < b for a, b in pairwise(starts))
        if last >= 0 and (not starts or not ascending or starts[-1] > last):
            expected = f"ascending slices from 0 to {last}, where it still fits"
            yield Problem(f"{at_k}.starts", show(starts), expected)


def _group(group: NodeGroup, gpu_type: GpuType, place: str) -> Iterator[Problem]:
    parts, fixed = gpu_type.ways, group.recut == "never"
    if parts is None and (group.cut or not fixed):
        found = f"GPUs of type {show(gpu_type.name)}, which has no parts"
        yield Problem(f"{place}.{'recut' if not fixed else 'cut'}", found, "its parts")
        return
    if group.cut and not fixed:
        expected = "none, or recut: never, as it is a fixed layout"
        yield Problem(f"{place}.cut", f"a layout with recut: {group.recut}", expected)
    if group.cut and group.shared:
        yield Problem(f"{place}.shared", "true with cut GPUs", "GPUs that are cut or shared")
    names = [p.name for p in parts.profiles] if parts else []
    unknown = [name for name in group.cut if name not in names]
    for name in dict.fromkeys(unknown):
        yield Problem(f"{place}.cut", show(name), one_of(names))
    if parts and group.cut and not unknown and arranged(parts, tuple(sorted(group.cut))) is None:
        expected = f"parts that fit on one GPU of type {show(gpu_type.name)} together"
        yield Problem(f"{place}.cut", show(group.cut), expected)


def asked_part_problems(
    jobs: Sequence[Job], places: Places, profiles: Mapping[str, Profile], cluster: Cluster
) -> Iterator[Problem]:
    """Yield the parts and fractions of GPUs that jobs cannot have on a (consistent) cluster."""
    types = {t.name: t for t in cluster.gpu_types}
    known: dict[tuple[object, ...], str | None] = {}
    for k, job in enumerate(jobs):
        if job.part is None and job.share is None:
            continue
        field = "part" if job.part is not None else "share"
        place, has = at(places, k, f".{field}", job), show(job.part or job.share)
        if job.part is not None and job.share is not None:
            yield Problem(place, f"{has} and a share", "one of the two")
            continue
        many = {job.gpus, job.min_gpus or 1, job.max_gpus or 1, *job.sizes} != {1}
        for wrong, words in (
            (many, "more than one GPU"),
            (job.fusible is not None, "a fusion class"),
            (job.exclusive, "nodes to itself"),
        ):
            if wrong:
                yield Problem(place, f"{has} with {words}", "one GPU, shared as its part says")
        if job.profile not in profiles:
            continue
        models = profiles[job.profile].throughput
        usable = [t for t in models if not job.gpu_types or t in job.gpu_types]
        key = (job.partition, job.part, tuple(usable))
        if key not in known:
            own = [t for t in cluster.node_groups if t.partition == job.partition]
            groups = [group for group in own if group.gpu_type in usable]
            known[key] = _lacking(job.part, groups, [types[t] for t in usable if t in types])
        lacks = known[key]
        if lacks is not None:
            yield Problem(place, has, lacks)


def _lacking(
    part: str | None, groups: Sequence[NodeGroup], usable: Sequence[GpuType]
) -> str | None:
    """Return what was expected if no group of nodes offers a part, else None."""
    if part is None:
        shares = any(group.offers(None) for group in groups)
        return None if shares else "nodes with shared: true that it may use"
    names = {t.name: [p.name for p in parts.profiles] for t in usable if (parts := t.ways)}
    known = list(dict.fromkeys(name for own in names.values() for name in own))
    if part not in known:
        return one_of(known) if known else "a GPU type with parts that it may use"
    if any(g.offers(part) and part in names.get(g.gpu_type, ()) for g in groups):
        return None
    return "nodes that it may use whose GPUs are cut so, or may be (recut)"


def shared_gpu_problems(cluster: Cluster, held: Mapping[str, Allocation]) -> Iterator[Problem]:
    """Yield the GPUs of a round on which running parts do not fit together."""
    on: dict[tuple[int, int], list[str]] = {}
    for job, given in held.items():
        for node, gpu, _ in given.parts:
            on.setdefault((node, gpu), []).append(job)
    for (node, gpu), jobs in on.items():
        there = [(held[job].option, held[job].parts[0][2]) for job in jobs]
        if 0 <= node < len(cluster.topology.node_gpus) and (why := crowded(cluster, node, there)):
            found = f"GPU {gpu} of node {node}, which {why}: jobs {', '.join(jobs)}"
            yield Problem("running", found, "parts that fit on a GPU together")
