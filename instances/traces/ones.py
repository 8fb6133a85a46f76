"""The workload of ONES (Bian, Li, Wang, You, SC 2021): short trainings of ten model-task pairs.

The jobs (models, data set sizes, batch sizes, requested GPUs, arrivals) are those of the authors'
artifact. Their speeds are not: no table of them is public, so the throughput models fitted to
ElasticFlow's A100 measurements stand in (`_SPEED`), and the epochs that a job needs are drawn
from the range that the artifact's job history shows for data sets of that size.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ronda.instances.errors import InputError
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.profile import Parametric, Profile
from ronda.instances.traces.rigid import V100_NODE, busy_power, make_cluster
from ronda.instances.traces.table import read_columns, refuse, rows, to_number

CITATION = (
    "Bian, Li, Wang, You: Online Evolutionary Batch Size Orchestration for Scheduling Deep "
    "Learning Workloads in GPU Clusters, SC 2021, arXiv:2108.03645"
)
# 16 nodes of 4 V100: TACC Longhorn (64 GPUs according to the abstract).
LONGHORN_NODE = replace(V100_NODE, gpus=4)

# Fits to ElasticFlow's A100 tables, seconds; mean error 1.1 to 3.1 %.
_SPEED = {
    "bert": Parametric(
        alpha_c_s=0.04861,
        beta_c_s=0.001832,
        alpha_r_s=0.06524,
        beta_r_s=0.001639,
        alpha_n_s=0.07202,
        beta_n_s=0.000456,
        gamma=2.61,
    ),
    "resnet50": Parametric(
        alpha_c_s=0.00741,
        beta_c_s=0.002133,
        alpha_r_s=0.01587,
        beta_r_s=0.002042,
        alpha_n_s=0.03216,
        beta_n_s=0.000155,
        gamma=1.21,
    ),
    "vgg16": Parametric(
        alpha_c_s=0.0,
        beta_c_s=0.003061,
        alpha_r_s=0.01304,
        beta_r_s=0.002266,
        alpha_n_s=0.02693,
        beta_n_s=0.000094,
        gamma=1.0,
    ),
    "inception_v3": Parametric(
        alpha_c_s=0.02136,
        beta_c_s=0.002898,
        alpha_r_s=0.04038,
        beta_r_s=0.002604,
        alpha_n_s=0.05888,
        beta_n_s=0.000222,
        gamma=1.76,
    ),
}
_STAND_IN = {"resnet18": "resnet50", "googlenet": "inception_v3", "alexnet": "vgg16"}

# model, task, data set sizes, base batch, largest batch / base batch (= max_lr / lr), GPUs.
_KINDS = (
    ("bert", "cola", (5000, 8000), 16, 4, 2),
    ("bert", "mrpc", (3600,), 16, 4, 2),
    ("bert", "sst2", (10000, 20000), 32, 8, 8),
    ("resnet18", "cifar", (20000, 40000), 256, 16, 4),
    ("vgg16", "cifar", (20000, 40000), 128, 16, 4),
    ("googlenet", "cifar", (20000, 40000), 256, 16, 4),
    ("alexnet", "imagenet", (10000, 20000), 64, 16, 16),
    ("resnet50", "imagenet", (10000, 20000), 32, 16, 16),
    ("vgg16", "imagenet", (10000, 20000), 32, 16, 16),
    ("inception_v3", "imagenet", (10000, 20000), 32, 16, 16),
)
_COLUMNS = ("time", "model", "task", "epoch_size", "batch_size", "lr", "max_lr", "num_gpus")


def ones_workload(jobs: int = 400, seed: int = 0, *, nodes: int = 16) -> Instance:
    """Return a workload of the pattern of the artifact's ``trace_1``.

    The ten model-task pairs in equal shares and random order, data set sizes drawn among the
    pair's, whole-second gaps drawn uniformly from 0 to 60 s.

    Parameters
    ----------
    jobs
        Number of jobs; ``trace_1`` has 400.
    seed
        Of order, sizes, gaps and epochs.
    nodes
        Nodes of 4 GPUs; ONES had 16.

    Raises
    ------
    InputError
        If there is no job.
    """
    if jobs < 1:
        raise InputError("jobs", str(jobs), "at least one job")
    rng = np.random.default_rng(seed)
    kinds = [_KINDS[k % len(_KINDS)] for k in rng.permutation(jobs)]
    times = np.concatenate([[0], rng.integers(0, 61, jobs - 1).cumsum()])
    frame = pd.DataFrame(
        [
            (time, model, task, sizes[rng.integers(len(sizes))], batch, 1, growth, gpus)
            for time, (model, task, sizes, batch, growth, gpus) in zip(times, kinds, strict=True)
        ],
        columns=list(_COLUMNS),
    )
    made = {"reader": "ones_workload", "jobs": jobs, "seed": seed, "nodes": nodes}
    return _instance(frame, rng, nodes, f"ones-{jobs}-{seed}", made)


def read_ones(path: str | Path, *, seed: int = 0, nodes: int = 16) -> Instance:
    """Read a trace of the ONES artifact (``trace_1.csv``, ``trace_dev.csv``).

    Parameters
    ----------
    path
        CSV file with columns ``time`` (s), ``model``, ``task``, ``epoch_size`` (samples),
        ``batch_size`` (of one GPU), ``lr``, ``max_lr`` and ``num_gpus``; others are not used.
    seed
        Of the epochs that each job needs (the trace does not tell).
    nodes
        Nodes of 4 GPUs.

    Raises
    ------
    InputError
        Naming file and row, for anything that cannot be a job.
    """
    frame = read_columns(path, {name: (name,) for name in _COLUMNS})
    for column in ("time", "epoch_size", "batch_size", "lr", "max_lr", "num_gpus"):
        frame[column] = to_number(path, frame, column)
        least = 0 if column == "time" else np.nextafter(0, 1)
        bad = (frame[column] < least).to_numpy()
        refuse(path, frame, bad, column, "0 or more" if column == "time" else "more than 0")
    unknown = ~frame.model.isin([*_SPEED, *_STAND_IN]).to_numpy()
    refuse(path, frame, unknown, "model", f"one of {', '.join([*_SPEED, *_STAND_IN])}")
    frame = frame.sort_values("time", kind="stable", ignore_index=True)
    made = {"reader": "read_ones", "seed": seed, "nodes": nodes}
    return _instance(frame, np.random.default_rng(seed), nodes, Path(path).stem, made)


def _instance(
    frame: pd.DataFrame,
    rng: np.random.Generator,
    nodes: int,
    name: str,
    made: dict[str, Any],
) -> Instance:
    """Return the instance of a frame with the artifact's columns."""
    cluster = make_cluster(LONGHORN_NODE, nodes)
    profiles: dict[str, Profile] = {}
    jobs = []
    for number, row in enumerate(rows(frame)):
        growth = round(row.max_lr / row.lr, 6)
        profile = _profile(row.model, row.task, float(row.batch_size), growth)
        profiles.setdefault(profile.name, profile)
        low, high = _epochs(row.model, int(row.epoch_size))
        mean, sd = (low + high) / 2, math.sqrt(((high - low + 1) ** 2 - 1) / 12)
        gpus = int(row.num_gpus)
        jobs.append(
            Job(
                id=f"{number:04d}",
                submit_s=float(row.time),
                profile=profile.name,
                gpus=gpus,
                min_gpus=1,
                max_gpus=min(4 * gpus, cluster.gpus),  # ONES's hard limit on growth
                # The learning rate grows with the GPUs until max_lr, and the batch with it.
                batch=float(row.batch_size) * min(gpus, growth),
                estimate=Estimate(work=mean * row.epoch_size, sd=sd * row.epoch_size),
                truth=Truth(work=float(rng.integers(low, high + 1)) * row.epoch_size),
            )
        )
    return Instance(
        name=name,
        cluster=cluster,
        profiles=profiles,
        jobs=tuple(jobs),
        # In-place scaling: 0.7 to 4.2 s were measured by ElasticFlow; 2 s is in their middle.
        costs=Costs(start_s=0.0, restart_s=2.0),
        cadence=Cadence(period_s=60.0, on_event=True),
        description="ONES workload; speeds are stand-ins (ElasticFlow's A100 measurements)",
        source="Pattern of github.com/kurisusnowdeng/ones_sc21, traces/",
        citation=CITATION,
        made=made,
    )


def _profile(model: str, task: str, batch: float, growth: float) -> Profile:
    """Return the profile of a model-task pair: batches double from `batch` up to the largest."""
    doublings = range(int(math.log2(growth)) + 1) if growth >= 1 else range(1)
    return Profile(
        name=f"{model}-{task}-{batch:g}",
        throughput={LONGHORN_NODE.gpu.name: _SPEED[_STAND_IN.get(model, model)]},
        power=busy_power(LONGHORN_NODE),
        base_batch=batch,
        batches=tuple(batch * 2.0**k for k in doublings),
        source=f"stand-in: {_STAND_IN.get(model, model)} on A100 (ElasticFlow, ASPLOS 2023)",
    )


def _epochs(model: str, epoch_size: int) -> tuple[int, int]:
    """Return the fewest and most epochs that jobs of such a data set took in the job history."""
    if model == "bert":
        return 5, 6
    if epoch_size >= 40_000:
        return 22, 36
    return (36, 69) if epoch_size >= 20_000 else (11, 50)
