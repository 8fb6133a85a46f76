"""The checker's own arithmetic of parts of GPUs: the memory slices of one GPU as bits."""

from collections import Counter
from collections.abc import Iterable, Sequence

from ronda.instances.cluster import Cluster
from ronda.instances.job import Option
from ronda.instances.violation import ROUNDING, Fault

On = tuple[Option, int]
"""An option on a part or a fraction of a GPU, and its first memory slice there."""


def part_faults(
    cluster: Cluster,
    option: Option,
    placement: Sequence[tuple[int, int]],
    parts: Sequence[tuple[int, int, int]],
) -> list[Fault]:
    """Return the faults of where one job's part of a GPU is, whoever else is there.

    The nodes of the placement exist. Whole GPUs have no parts, and are on nodes whose GPUs are not
    cut for good.
    """
    topology, groups = cluster.topology, cluster.node_groups
    on = [groups[topology.node_group[node]] for node, _ in placement]
    if option.share is None:
        cut = [node for (node, _), group in zip(placement, on, strict=True) if group.cut]
        found = [Fault("part", f"holds parts {list(parts)}, but has whole GPUs")] if parts else []
        return found + [Fault("part", f"whole GPUs on node {n}, whose GPUs are cut") for n in cut]
    if len(parts) != 1 or [(parts[0][0], 1)] != list(placement):
        message = f"holds parts {list(parts)} at {list(placement)}, not one part of one GPU there"
        return [Fault("part", message)]
    ((node, gpu, start),), (group,) = parts, on
    if gpu >= group.gpus_per_node:
        last = group.gpus_per_node - 1
        return [Fault("part", f"on GPU {gpu} of node {node}, which has GPUs 0 to {last}")]
    known = next(t for t in cluster.gpu_types if t.name == group.gpu_type).ways
    own = [p for p in known.profiles if p.name == option.part] if known else []
    if option.part is None and (not group.shared or start):
        why = f"starts at slice {start}, not at 0" if group.shared else "where no job shares a GPU"
        return [Fault("part", f"a fraction on node {node} {why}")]
    if own and start not in own[0].starts:
        message = f"{option.part} starts at slice {start}, not at one of {list(own[0].starts)}"
        return [Fault("part", message)]
    return []


def crowded(cluster: Cluster, node: int, on: Iterable[On]) -> str:
    """Return why some known parts do not fit on one GPU of a node together, or ""."""
    group, there = cluster.node_groups[cluster.topology.node_group[node]], list(on)
    if any(option.part is None for option, _ in there):
        total = sum(option.share or 0.0 for option, _ in there)
        if any(option.part for option, _ in there):
            return "is cut into parts and shared at once"
        return f"is shared out {total:.6g} times" if total > 1 + ROUNDING else ""
    parts = next(t for t in cluster.gpu_types if t.name == group.gpu_type).ways
    profiles = {p.name: p for p in parts.profiles} if parts else {}
    taken, there = 0, [(option, start) for option, start in there if option.part in profiles]
    for option, start in there:
        own = ((1 << profiles[option.part or ""].memory) - 1) << start
        if taken & own:
            return f"has two parts on memory slice {(taken & own).bit_length() - 1}"
        taken |= own
    counts = Counter(option.part or "" for option, _ in there)
    for name, times in counts.items():
        if times > profiles[name].most:
            return f"has {times} parts {name}, at most {profiles[name].most}"
    if group.recut != "never":
        return ""
    rest = Counter(group.cut)
    rest.subtract(counts)
    for name, left in rest.items():
        if left < 0:
            return f"has {counts[name]} parts {name}, but is cut into {group.cut.count(name)}"
    masks = {
        p.name: [((1 << p.memory) - 1) << start for start in p.starts] for p in profiles.values()
    }
    if not _completes(masks, sorted(rest.elements()), taken):
        return f"has parts where it is not cut into {', '.join(group.cut)}"
    return ""


def _completes(masks: dict[str, list[int]], names: Sequence[str], taken: int) -> bool:
    """Return whether parts of the given names still find their slices."""
    if not names:
        return True
    rest = names[1:]
    return any(
        not mask & taken and _completes(masks, rest, taken | mask) for mask in masks[names[0]]
    )
