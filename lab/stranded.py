"""What strands GPUs: host resources, and fractions of GPUs, in a real mix of pods.

The GPU nodes and pods of Alibaba's cluster of 2023 (https://github.com/alibaba/clusterdata,
cluster-trace-gpu-v2023) as its two CSV files, plain or with gzip. Pods are drawn again and again in
a random order and placed by best fit for good, until 1.3 times the GPUs have been asked for. A pod
needs its CPUs and memory on one node, and a fraction of a GPU, or whole ones. Types of GPUs are
left out, as no pod of the list names one. No pod needs more than a node, so racks strand nothing.
"""

import csv
import gzip
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lab.harness import Folder, markdown, option, seeds, study
from ronda.formulations.placement.book import NodeBook
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Job, JobState, Need, Option
from ronda.instances.profile import rigid_profile
from ronda.instances.round import Round

OFFERED = 1.3
"""The GPUs that pods ask for, per GPU of the cluster."""

WAYS = {
    "all rows": ("cpu_milli memory_mib", True),
    "without CPU": ("memory_mib", True),
    "without CPU and memory": ("", True),
    "whole GPUs": ("cpu_milli memory_mib", False),
    "whole GPUs, without CPU and memory": ("", False),
}
"""The resources of hosts that count, and whether GPUs are shared."""


@lru_cache(maxsize=2)
def rows_of(path: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    opened = gzip.open if path.endswith(".gz") else Path.open
    with opened(Path(path), "rt") as file:
        return list(csv.DictReader(file))


def cluster_of(nodes: Sequence[dict[str, str]], names: Sequence[str]) -> Cluster:
    """Return the nodes as groups of equal ones that have the named resources."""
    kinds = Counter((int(n["gpu"]), tuple(float(n[name]) for name in names)) for n in nodes)
    groups = tuple(
        NodeGroup(
            name=f"g{k}",
            count=count,
            gpus_per_node=gpus,
            gpu_type="GPU",
            has=dict(zip(names, has, strict=True)),
            shared=True,
        )
        for k, ((gpus, has), count) in enumerate(kinds.items())
    )
    return Cluster(gpu_types=(GpuType(name="GPU", memory_gib=16.0),), node_groups=groups)


def pod(row: dict[str, str], k: int, names: Sequence[str], *, shared: bool) -> JobState:
    """Return a pod as a job that needs the named resources once."""
    gpus, milli = int(row["num_gpu"]), int(row["gpu_milli"] or 1000)
    share = milli / 1000 if shared and gpus == 1 and milli < 1000 else None
    needs = {name: Need(flat=float(row[name])) for name in names}
    made = Job(id=str(k), submit_s=0, profile="rigid", gpus=gpus, share=share, needs=needs)
    return JobState(job=made, since_s=0)


def measure(*, nodes: str, pods: str, way: str, seed: int) -> dict[str, Any]:
    """Pack pods in a random order; return the share of GPUs that they got."""
    named, shared = WAYS[way]
    names, rng = named.split(), np.random.default_rng(seed)
    cluster = cluster_of(rows_of(nodes), names)
    rows = [row for row in rows_of(pods) if int(row["num_gpu"])]
    some = tuple(pod(row, k, names, shared=shared) for k, row in enumerate(rows))
    round_ = Round(cluster=cluster, profiles={"rigid": rigid_profile("GPU")}, waiting=some)
    book, total = NodeBook(round_), int(cluster.topology.node_gpus.sum())
    asked = got = 0.0
    order: list[int] = []
    drawn = 0
    while asked < OFFERED * total:
        order = order or rng.permutation(len(rows)).tolist()
        drawn += 1
        state = pod(rows[order.pop()], drawn, names, shared=shared)
        share = state.job.share or 1.0
        asked += state.job.gpus * share
        wanted = Option(pool=0, gpus=state.job.gpus, span="node", share=state.job.share)
        placement = book.fit(state, wanted)
        if placement is not None:
            book.take(state, Allocation(option=wanted, placement=placement))
            got += state.job.gpus * share
    return {"gpus": total, "pods": drawn, "allocated": got / total}


def table_of(runs: pd.DataFrame) -> str:
    """Return the means by way; Markdown."""
    rows = [
        [str(way), f"{100 * own.allocated.mean():.1f}", f"{100 * (1 - own.allocated.mean()):.1f}"]
        for way, own in runs.groupby("way", sort=False)
    ]
    return markdown(["rows", "GPUs allocated (%)", "stranded (%)"], rows, words=1)


def compare(folder: Folder, seeds: Sequence[int], nodes: str, pods: str) -> None:
    """Pack pods with and without each kind of row."""
    cases: list[dict[str, Any]] = [
        {"nodes": nodes, "pods": pods, "way": way, "seed": s} for way in WAYS for s in seeds
    ]
    folder.write(table_of(folder.measure(cases, measure)))


command = study(
    "stranded",
    __doc__,
    compare,
    [
        seeds("0-2"),
        option("--nodes", required=True, help="CSV file of GPU nodes."),
        option("--pods", required=True, help="CSV file of pods."),
    ],
)
