"""Speed of ronda inside another scheduler: decisions of a façade that is handed tables of rates."""

from typing import Any

import numpy as np

from lab.speed.cases import case, timed
from ronda.hosts.embedding.changes import Changes
from ronda.hosts.embedding.embedded import Embedded
from ronda.instances.base import Floats
from ronda.instances.cluster import Cluster, GpuType, uniform_cluster
from ronda.instances.job import Costs

TILE, GPUS = 14, 64
"""Jobs, and GPUs on nodes of eight, of a round that is laid side by side with itself."""

COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64)
SPREAD = (2, 4)
"""GPU counts of a table on the fewest nodes, and those that it has on two nodes as well."""

NEWS = 0.05
"""Share of the jobs that measure other rates before each further decision."""

AGAIN = 20
ROUND_S = 60.0


@case("14,112,448")
def measure_embedding(jobs: int, policy: str = "prices", seed: int = 0) -> dict[str, Any]:
    """Time decisions inside another scheduler: 14 jobs on 64 GPUs, laid side by side.

    Each job has a measured table of 20 rows. Processor time: make_s of reading jobs and tables,
    total_s of that and the first decision, again_s of an update of 5 % of the tables and all
    progress, and a decision (median of 20).
    """
    warm = Embedded(policy, _cluster(TILE))  # so that everything is loaded
    warm.update(added=_rows(TILE, np.random.default_rng(seed + 1))[0])
    warm.decide()
    cluster, rng = _cluster(jobs), np.random.default_rng(seed)
    host = Embedded(policy, cluster, costs=Costs(restart_s=30.0), length_s=ROUND_S, seed=seed)
    rows, elasticity = _rows(jobs, rng)
    _, _, make_s = timed(lambda: host.update(now_s=0.0, added=rows))
    changes, _, first_s = timed(host.decide)
    again = []
    for k in range(1, AGAIN + 1):
        some = rng.choice(jobs, max(1, round(NEWS * jobs)), replace=False).tolist()
        measured = {rows[j]["id"]: _table(float(elasticity[j]), rng) for j in some}
        done = dict.fromkeys(host.jobs, 0.001 * k * ROUND_S)

        def once(k: int = k, measured: Any = measured, done: Any = done) -> Changes:
            host.update(now_s=k * ROUND_S, progress=done, measured=measured)
            return host.decide()

        changes, _, cpu_s = timed(once)
        again.append(cpu_s)
    plan = changes.plan
    return {
        "gpus": cluster.gpus,
        "options": plan.record.options,
        "total_s": make_s + first_s,
        "make_s": make_s,
        "again_s": float(np.median(again)),
        "gap": plan.gap,
        "placed": len(plan.allocations),
        "status": plan.status.value,
    }


def _cluster(jobs: int) -> Cluster:
    tiles = max(1, round(jobs / TILE))
    return uniform_cluster(GpuType(name="A100", memory_gib=40), tiles * GPUS // 8, 8)


def _rows(jobs: int, rng: np.random.Generator) -> tuple[list[dict[str, Any]], Floats]:
    work, elasticity = rng.lognormal(8.0, 1.0, jobs), rng.uniform(0.4, 0.95, jobs)
    rows = [
        {"id": f"j{j}", "gpus": 1, "work": work[j], "rates": _table(float(elasticity[j]), rng)}
        for j in range(jobs)
    ]
    return rows, elasticity


def _table(elasticity: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return a measured table of 20 rows: n^p, off by 5 %, and slower on more nodes than needed."""
    gpus = np.array([*COUNTS, *SPREAD])
    nodes = np.array([*(-(-n // 8) for n in COUNTS), *(2 for _ in SPREAD)])
    slower = np.where(np.arange(len(gpus)) < len(COUNTS), 1.0, 0.8)
    rate = gpus**elasticity * slower * rng.lognormal(0.0, 0.05, len(gpus))
    return {"gpus": gpus, "nodes": nodes, "rate": rate}
