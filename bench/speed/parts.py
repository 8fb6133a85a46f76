"""Speed of ronda's own parts: its import, its reader, the driver of the rolling horizon."""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.bench.speed.cases import timed
from ronda.instances import generate
from ronda.instances.budget import Budget
from ronda.instances.errors import InputError
from ronda.instances.files.json import read, write
from ronda.instances.instance import Instance
from ronda.instances.job import Estimate, Job, Truth
from ronda.instances.profile import rigid_profile
from ronda.instances.traces.helios import read_helios
from ronda.instances.traces.rigid import V100_NODE, make_cluster
from ronda.solvers.horizon.driver import run


def measure_import(jobs: int) -> dict[str, Any]:
    """Time the import in fresh processes, as the process itself sees it."""
    del jobs
    return {
        "total_s": statistics.median(_import_s("ronda") for _ in range(3)),
        "baseline_s": statistics.median(_import_s("numpy") for _ in range(3)),
    }


def _import_s(name: str) -> float:
    """Return the seconds that an import takes in a fresh process."""
    code = f"import time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure_read(jobs: int, trace: Path | None) -> dict[str, Any]:
    """Time the reading of an instance file."""
    instance = rigid_trace(jobs, trace)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.json"
        write(instance, path)
        _, total_s, _ = timed(lambda: read(path))
        _, baseline_s, _ = timed(lambda: json.loads(path.read_bytes()))
    return {
        "jobs": len(instance.jobs),
        "gpus": instance.cluster.gpus,
        "total_s": total_s,
        "baseline_s": baseline_s,
    }


def measure_engine(jobs: int, trace: Path | None) -> dict[str, Any]:
    """Time FIFO over a whole rigid trace."""
    instance = rigid_trace(jobs, trace)
    schedule, total_s, _ = timed(lambda: run(instance, "fifo", time_limit_s=None))
    return {
        "jobs": len(instance.jobs),
        "gpus": instance.cluster.gpus,
        "total_s": total_s,
        "solve_s": sum(record.solve_s for record in schedule.rounds),
        "rounds": len(schedule.rounds),
    }


def measure_driver(jobs: int) -> dict[str, Any]:
    """Time the driver's share of rounds with about `jobs` live jobs, under SRTF."""
    instance = generate.horizon(2 * jobs, max(8, jobs // 2 // 8 * 8), "balanced", 0)
    # All but one in four are there from the start, so that the number of live jobs passes `jobs`.
    early = tuple(
        replace(job, submit_s=0.0 if k % 4 else job.submit_s) for k, job in enumerate(instance.jobs)
    )
    jobs_by_time = tuple(sorted(early, key=lambda job: job.submit_s))
    # Without budgets: under these some jobs, as requested, could never run.
    crowded = replace(instance, jobs=jobs_by_time, budget=Budget())
    records = [
        record
        for record in run(crowded, "srtf", time_limit_s=None).rounds
        if 0.8 * jobs <= record.waiting + record.running <= 1.2 * jobs
    ]
    if not records:
        raise InputError("--jobs", str(jobs), "a number of live jobs that the horizon reaches")
    return {
        "gpus": crowded.cluster.gpus,
        "total_s": statistics.fmean(record.overhead_s for record in records),
        "baseline_s": statistics.fmean(record.solve_s for record in records),
        "rounds": len(records),
    }


def rigid_trace(jobs: int, trace: Path | None) -> Instance:
    """Return a rigid instance: the first jobs of a Helios log, or random ones at 0.9 load."""
    if trace is None:
        return _random_trace(jobs)
    whole = read_helios(trace, nodes=133)  # as many as the cluster of the Venus trace had
    return replace(whole, jobs=whole.jobs[:jobs])


def _random_trace(jobs: int) -> Instance:
    """Return rigid jobs with the mix of sizes of a research cluster, on 128 nodes of 8 GPUs."""
    rng = np.random.default_rng(0)
    cluster = make_cluster(V100_NODE, 128)
    gpus = rng.choice([1, 2, 4, 8, 16, 32], jobs, p=[0.6, 0.12, 0.1, 0.12, 0.04, 0.02])
    work_s = np.clip(np.rint(rng.lognormal(6.0, 1.8, jobs)), 1.0, 604_800.0)
    span_s = float((gpus * work_s).sum()) / (0.9 * cluster.gpus)
    submit_s = np.sort(np.rint(rng.uniform(0.0, span_s, jobs)))
    name = V100_NODE.gpu.name
    made = tuple(
        Job(
            id=f"j{k}",
            submit_s=at,
            profile="rigid",
            gpus=n,
            estimate=Estimate(work=work),
            truth=Truth(work=work),
        )
        for k, (at, n, work) in enumerate(
            zip(submit_s.tolist(), gpus.tolist(), work_s.tolist(), strict=True)
        )
    )
    profiles = {"rigid": rigid_profile(name)}
    return Instance(name=f"random-{jobs}", cluster=cluster, profiles=profiles, jobs=made)
