"""Speed of ronda inside another scheduler: decisions of a façade that is handed tables of rates."""

from typing import Any

import numpy as np

from ronda.bench.speed.cases import timed
from ronda.instances.cluster import Cluster, GpuType, uniform_cluster
from ronda.instances.job import Costs
from ronda.solvers.embedding import Embedded
from ronda.solvers.embedding.changes import Changes

TILE, GPUS = 14, 64
"""Jobs, and GPUs on nodes of eight, of a round that is laid side by side with itself."""

COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64)
SPREAD = (2, 4)
"""GPU counts of a table on the fewest nodes, and those that it has on two nodes as well."""

NEWS = 0.05
"""Share of the jobs that measure other rates before each further decision."""

AGAIN = 20
ROUND_S = 60.0


def measure_embedding(jobs: int, policy: str, seed: int) -> dict[str, Any]:
    """Decide about jobs that nobody has seen, then about all but as many that changed.

    Processor time. `make_s` is what the façade takes to read the jobs and tables, `total_s` that
    and the first decision, `again_s` an update of 5 % of the tables and all progress, and a
    decision (median).
    """
    _warm(policy, TILE, seed)
    cluster = _cluster(jobs)
    host = Embedded(policy, cluster, costs=Costs(restart_s=30.0), length_s=ROUND_S, seed=seed)
    rng = np.random.default_rng(seed)
    rows, elasticity = _rows(jobs, rng), rng.uniform(0.4, 0.95, jobs)
    _, _, make_s = timed(lambda: host.update(now_s=0.0, added=_with_rates(rows, elasticity, rng)))
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
        "policy": policy,
        "seed": seed,
    }


def _warm(policy: str, jobs: int, seed: int) -> None:
    """Decide once, so that everything is loaded."""
    rng = np.random.default_rng(seed + 1)
    host = Embedded(policy, _cluster(jobs))
    host.update(added=_with_rates(_rows(jobs, rng), rng.uniform(0.4, 0.95, jobs), rng))
    host.decide()


def _cluster(jobs: int) -> Cluster:
    tiles = max(1, round(jobs / TILE))
    return uniform_cluster(GpuType(name="A100", memory_gib=40), tiles * GPUS // 8, 8)


def _rows(jobs: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    work = rng.lognormal(8.0, 1.0, jobs)
    return [{"id": f"j{j}", "gpus": 1, "work": work[j]} for j in range(jobs)]


def _with_rates(
    rows: list[dict[str, Any]], elasticity: Any, rng: np.random.Generator
) -> list[dict[str, Any]]:
    return [row | {"rates": _table(float(p), rng)} for row, p in zip(rows, elasticity, strict=True)]


def _table(elasticity: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return a measured table of 20 rows: n^p, off by 5 %, and slower on more nodes than needed."""
    gpus = np.array([*COUNTS, *SPREAD])
    nodes = np.array([*(-(-n // 8) for n in COUNTS), *(2 for _ in SPREAD)])
    slower = np.where(np.arange(len(gpus)) < len(COUNTS), 1.0, 0.8)
    rate = gpus**elasticity * slower * rng.lognormal(0.0, 0.05, len(gpus))
    return {"gpus": gpus, "nodes": nodes, "rate": rate}
