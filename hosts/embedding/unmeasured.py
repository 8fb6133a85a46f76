"""Profiles without measured steps, which say where jobs can run; step times are learnt later."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ronda.formulations.options.application import pool_shapes
from ronda.instances.arguments import checked
from ronda.instances.base import Count, Positive
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.profile import Profile, Tabular
from ronda.instances.rules.problem import one_of, show

Local = tuple[Positive, Positive]
"""The fewest and the most samples per GPU in a pass."""


@checked
def unmeasured_profile(
    name: str,
    cluster: Cluster,
    *,
    base_batch: Positive = 1.0,
    max_batch: Positive | None = None,
    local_batch: Local | Mapping[str, Local] | None = None,
    max_gpus: Count | None = None,
    gpu_types: Collection[str] = (),
) -> Profile:
    """Return the profile of an application without measured steps.

    It is meant for ``Embedded(speeds="learnt")``: the measured steps of its jobs give it the speeds
    of `ronda.formulations.prediction.speeds`, including corrections.

    Parameters
    ----------
    name
        Name of the application.
    cluster
        Cluster on which jobs run: on GPUs of one node or on whole nodes, and on one node more.
    base_batch
        Global batch size at which a unit of work is one sample.
    max_batch
        Largest global batch that may be chosen if the training adapts the learning rate. With None
        jobs keep their own batch or the base batch.
    local_batch
        Fewest and most samples per GPU in a pass, for all GPU types or keyed by type. Larger shares
        are accumulated over several passes. Types without an entry have the widest range of all
        entries. None allows every share of a global batch.
    max_gpus
        Most GPUs of a job; by default all GPUs of a type.
    gpu_types
        Names of the GPU types on which it can run; empty means all types.

    Examples
    --------
    >>> import ronda
    >>> cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=40), 3, 8)
    >>> net = ronda.unmeasured_profile("net", cluster, base_batch=32, max_batch=1024)
    >>> sorted(set(net.throughput["A100"].gpus)), net.batches[0], net.batches[-1]
    ([1, 2, 3, 4, 5, 6, 7, 8, 16, 24], 32.0, 1024.0)
    """
    known, shapes = [gpu_type.name for gpu_type in cluster.gpu_types], pool_shapes(cluster)
    for each in gpu_types:
        if each not in known:
            raise InputError(f"profile {name!r}, gpu_types", show(each), one_of(known))
    most_batch = max(base_batch, max_batch or base_batch)
    of_type = dict[str, tuple[float, float]]()
    told = [(base_batch / max(shape.pool.gpus for shape in shapes), most_batch)]
    if isinstance(local_batch, Mapping):
        of_type = dict(local_batch)
        told = list(of_type.values()) or told
    elif local_batch is not None:
        told = [local_batch]
    for low, high in told:
        if not 0 < low <= high:
            raise InputError(f"profile {name!r}, local_batch", f"{low:g} to {high:g}", "an ascent")
    low, high = min(low for low, _ in told), max(high for _, high in told)
    throughput = {}
    for shape in shapes:
        kind, per_node = shape.pool.gpu_type.name, shape.pool.gpus_per_node
        if (gpu_types and kind not in gpu_types) or kind in throughput:
            continue
        local = _steps(*of_type.get(kind, (low, high)))
        most = min(shape.pool.gpus, max_gpus or shape.pool.gpus)
        counts = {*range(1, per_node), *range(per_node, most + 1, per_node)}
        ways = [
            (n, m, each)
            for n in sorted(counts)
            if n <= most
            for m in range(shape.nodes(n), min(n, shape.nodes(n) + 1, shape.pool.nodes) + 1)
            for each in local
        ]
        gpus, nodes, batches = zip(*ways, strict=True)
        step_s, sync_s = (1.0,) * len(ways), (0.0,) * len(ways)
        throughput[kind] = Tabular(
            gpus=gpus, nodes=nodes, local_batch=batches, step_s=step_s, sync_s=sync_s
        )
    return Profile(
        name=name,
        throughput=dict(throughput),
        base_batch=base_batch,
        batches=() if max_batch is None else tuple(_steps(base_batch, most_batch)),
        min_local_batch=low,
        max_local_batch=high,
        source="steps that its jobs measure",
    )


def _steps(low: float, high: float) -> Sequence[float]:
    """Return numbers from `low` to `high` in geometric steps, rounded if whole numbers differ."""
    found = np.geomspace(low, high, 16)
    whole = np.unique(np.round(found))
    ends = {float(low), float(high)}
    return sorted(
        ends | {float(n) for n in (whole if high - low >= 2 else found) if low <= n <= high}
    )
