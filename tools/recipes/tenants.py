"""A week of Philly whose virtual clusters share one cluster, with time limits and host resources.

Arrivals, GPUs, run times and virtual clusters are Philly's. In the trace each virtual cluster has
nodes of its own; here it is a tenant whose guarantee is its share of the nodes, and may use what
others leave. What jobs need of hosts is drawn with a seed from pods of Alibaba's openb cluster.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec import structs

from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Estimate, Job, Need
from ronda.instances.site import Quota, Site, Tenant
from ronda.instances.traces.columns import Filters
from ronda.instances.traces.published import DAY_S, PUBLISHED, trace_rows
from ronda.instances.traces.rigid import rigid_instance
from ronda.instances.traces.table import rows

_NODES, _GPUS_PER_NODE, _LOAD, _SEED = 24, 8, 0.88, 1
_WEEK = Filters(
    start_s=49 * DAY_S,
    end_s=56 * DAY_S,
    min_duration_s=60.0,
    max_duration_s=4 * DAY_S,
    max_gpus=64,
)
# The hosts of openb's 549 nodes with eight GPUs of type G2.
_HAS = {"cpu": 96.0, "memory_gib": 384.0}
# Hours that users of a site may ask for; a job has the next or the second next above its run time.
_LIMITS_H = (0.5, 1, 2, 4, 8, 12, 24, 48, 72, 96, 120, 168)
_OPENB = (
    "Weng, Yang, Yu, Wang, Tang, Yang, Zhang: Beware of Fragmentation: Scheduling GPU-Sharing "
    "Workloads with Fragmentation Gradient Descent, USENIX ATC 2023"
)


def philly_tenants(source: Path) -> Instance:
    """Return the instance."""
    rng = np.random.default_rng(_SEED)
    path = source / "philly" / "jobs_canonical.csv.gz"
    frame = _thinned(trace_rows("philly", path, filters=_WEEK), rng)
    plain = rigid_instance(
        frame, path=path, name="philly-tenants", nodes=_NODES, **PUBLISHED["philly"]._asdict()
    )
    group = structs.replace(plain.cluster.node_groups[0], has=_HAS)
    needs = _needs(source / "alibaba_openb2023" / "openb_pod_list_default.csv.gz", frame, rng)
    later = rng.integers(1, 3, len(frame)).tolist()
    jobs = tuple(
        _job(job, str(row.vc), need, step)
        for job, row, need, step in zip(plain.jobs, rows(frame), needs, later, strict=True)
    )
    tenants = _tenants(pd.read_csv(source / "philly" / "philly_vc.csv"))
    load = sum(j.gpus * j.truth.work for j in jobs if j.truth) / (_gpus() * 7 * DAY_S)
    return structs.replace(
        plain,
        cluster=structs.replace(plain.cluster, node_groups=(group,)),
        jobs=jobs,
        site=Site(tenants=tenants, usage_half_life_s=2 * DAY_S, kills_at_limit=False),
        costs=Costs(restart_s=60.0),
        description=(
            f"Philly, the week from 2017-10-23, shared by its {len(tenants) - 1} virtual clusters: "
            f"{len(jobs):,} rigid jobs on {_NODES} nodes of 8 GPUs, with CPUs and memory\n"
            "Measured: arrivals, GPUs, run times (Philly; thinned at random to a load of "
            f"{load:.3f}), virtual clusters and how many nodes each has. Here a virtual cluster is "
            "a tenant: its share of the nodes is its guarantee, and it may hold twice as much, or "
            "a quarter of the cluster, if others leave it. Drawn with a seed: CPUs and memory per "
            "GPU, from pods of Alibaba's openb cluster that ask for whole GPUs (at most a node "
            "per job piece); hosts are those of openb's largest class of eight-GPU nodes. Made: "
            "time limits, the first or second step of a usual ladder above the run time; they are "
            "all that is declared of sizes, and nobody is stopped at one. Assumptions: a restart "
            "takes 60 s; use is forgotten by half in two days."
        ),
        source=f"{plain.source}; needs: github.com/alibaba/clusterdata, openb 2023",
        licence="CC-BY-4.0 (jobs), Apache-2.0 (needs)",
        citation=f"{plain.citation}; {_OPENB}",
        made={"recipe": "tenants", "seed": _SEED, "nodes": _NODES, "load": round(load, 4)},
    )


def _gpus() -> int:
    return _NODES * _GPUS_PER_NODE


def _thinned(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return as many jobs, in random order, as ask for the wanted GPU time; sorted as before."""
    order = rng.permutation(len(frame))
    gpu_s = (frame.num_gpus * frame.duration_s).to_numpy()[order].cumsum()
    kept = np.sort(order[gpu_s <= _LOAD * _gpus() * 7 * DAY_S])
    return frame.iloc[kept].reset_index(drop=True)


def _needs(path: Path, frame: pd.DataFrame, rng: np.random.Generator) -> list[dict[str, Need]]:
    """Return what each job needs per GPU, as some pod of openb with whole GPUs does."""
    pods = pd.read_csv(path)
    pods = pods[(pods.num_gpu >= 1) & (pods.gpu_milli == 1000)]
    cpu = (pods.cpu_milli / 1000 / pods.num_gpu).to_numpy()
    memory = (pods.memory_mib / 1024 / pods.num_gpu).to_numpy()
    found = []
    for gpus, k in zip(frame.num_gpus, rng.integers(len(pods), size=len(frame)), strict=True):
        piece = min(int(gpus), _GPUS_PER_NODE)
        each = {"cpu": float(cpu[k]), "memory_gib": float(memory[k])}
        most = {name: _HAS[name] / piece for name in each}
        found.append({n: Need(per_gpu=round(min(each[n], most[n]), 3)) for n in each})
    return found


def _job(job: Job, tenant: str, needs: Mapping[str, Need], step: int) -> Job:
    """Return a job of a tenant, with a time limit that is all that is declared of its size."""
    assert job.truth is not None
    hours = [h for h in _LIMITS_H if h * 3600 >= job.truth.work]
    limit_s = 3600.0 * hours[min(step, len(hours)) - 1]
    fields: dict[str, Any] = {"tenant": tenant, "needs": dict(needs), "limit_s": limit_s}
    return structs.replace(job, estimate=Estimate(work=limit_s), **fields)


def _tenants(nodes: pd.DataFrame) -> tuple[Tenant, ...]:
    """Return the root, which has all GPUs, and each virtual cluster with its share as guarantee."""
    shares = nodes["node num"].to_numpy() * _gpus() / nodes["node num"].sum()
    whole = np.floor(shares).astype(int)
    left = _gpus() - int(whole.sum())
    whole[np.argsort(whole - shares, kind="stable")[:left]] += 1
    found = [Tenant(name="philly")]
    for name, gpus in zip(nodes.vc, whole.tolist(), strict=True):
        most = max(2 * gpus, math.ceil(_gpus() / 4))
        quota = Quota(guaranteed=float(gpus), limit=float(most))
        found.append(Tenant(name=str(name), parent="philly", quotas=(quota,), weight=float(gpus)))
    return tuple(found)
