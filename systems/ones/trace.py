"""The workload of ONES (Bian, Li, Wang, You, SC 2021): short trainings of ten model-task pairs.

The jobs (models, data set sizes, batch sizes, requested GPUs, arrivals) are those of the authors'
artifact, tabulated. What is not public is modelled in `ronda.systems.ones.trace_models`: speed,
epochs to converge, efficiency of large batches, losses, switching costs. One thing can only be
chosen, the batch that a *user* asks for: the trace tells the batch of one GPU. Whether the
artifact's baselines trained with it on all GPUs of a job together ("base"), or on each of them as
far as max_lr allows ("scaled", which is what ONES itself does there), is not public.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ronda.instances.errors import InputError
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Estimate, Job, Truth
from ronda.instances.profile import Profile
from ronda.instances.rules.jobs import LAST_S
from ronda.instances.rules.problem import limits, show, too_many
from ronda.instances.rules.profile import LEAST_BATCH, MOST_BATCH
from ronda.instances.traces.rigid import make_cluster
from ronda.systems.ones import trace_models as models

CITATION = (
    "Bian, Li, Wang, You: Online Evolutionary Batch Size Orchestration for Scheduling Deep "
    "Learning Workloads in GPU Clusters, SC 2021, arXiv:2108.03645"
)
MOST_GROWTH = 1024
"""Times the base batch that a trace may let a batch be: each of them is one to choose from."""

Batch = Literal["scaled", "base"]
"""What a user's batch may be (see the module's text)."""

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


class _Row(NamedTuple):
    """A job as the artifact's traces tell it."""

    time: float
    model: str
    task: str
    epoch_size: float
    batch_size: float
    lr: float
    max_lr: float
    num_gpus: float


def ones_workload(
    jobs: int = 50, seed: int = 0, *, nodes: int = 16, batch: Batch = "scaled"
) -> Instance:
    """Return a workload of the pattern of the artifact's ``trace_1``, which has 400 jobs.

    The ten model-task pairs in equal shares and random order, data set sizes drawn among the
    pair's, whole-second gaps drawn uniformly from 0 to 60 s; the seed also draws the epochs.

    Parameters
    ----------
    jobs
        Their number.
    seed
        Same seed, same jobs.
    nodes
        Of 4 GPUs; ONES had 16.
    batch
        What users ask for, and what policies keep that do not choose batches: the batch that suits
        all their GPUs, or that of one.

    Raises
    ------
    InputError
        If there is no job or node, or no such batch.
    """
    if batch not in get_args(Batch):
        raise InputError("batch", repr(batch), f"one of {', '.join(get_args(Batch))}")
    for name, value in (("jobs", jobs), ("nodes", nodes)):
        if value < 1:
            raise InputError(name, str(value), f"at least one {name[:-1]}")
        if too_many(name, name, value):
            raise InputError(name, show(value), limits().at_most(name))
    rng = np.random.default_rng(seed)
    kinds = [_KINDS[k % len(_KINDS)] for k in rng.permutation(jobs)]
    times = np.concatenate([[0], rng.integers(0, 61, jobs - 1).cumsum()])
    told = [
        _Row(time, model, task, sizes[rng.integers(len(sizes))], batch, 1, growth, gpus)
        for time, (model, task, sizes, batch, growth, gpus) in zip(times, kinds, strict=True)
    ]
    made = {"reader": "ones_workload", "jobs": jobs, "seed": seed, "nodes": nodes}
    name = f"ones-{jobs}-{seed}" + ("-base" if batch == "base" else "")
    return _instance(told, rng, name, batch, made)


def read_ones(path: str | Path, *, seed: int = 0, nodes: int = 16) -> Instance:
    """Read a trace of the ONES artifact (``trace_1.csv``, ``trace_dev.csv``).

    Its columns are ``time`` (s), ``model``, ``task``, ``epoch_size`` (samples), ``batch_size`` (of
    one GPU), ``lr``, ``max_lr`` and ``num_gpus``; others are not used. It does not tell the epochs
    that each job needs, which the seed draws.

    Parameters
    ----------
    path
        The trace.
    seed
        Of the epochs needed.
    nodes
        Of 4 GPUs.

    Raises
    ------
    InputError
        Naming file and row, for anything that cannot be a job.
    """
    from ronda.instances.traces.table import positive, read_columns, refuse, rows, to_number

    frame = read_columns(path, {name: (name,) for name in _Row._fields})
    for column in ("epoch_size", "batch_size", "lr", "max_lr", "num_gpus"):
        frame[column] = positive(path, frame, column)
    off = ~frame.batch_size.between(LEAST_BATCH, MOST_BATCH).to_numpy()
    refuse(path, frame, off, "batch_size", f"{LEAST_BATCH:g} to {MOST_BATCH:g} samples")
    steep = (frame.max_lr > MOST_GROWTH * frame.lr).to_numpy()
    refuse(path, frame, steep, "max_lr", f"at most {MOST_GROWTH} times lr")
    frame["time"] = to_number(path, frame, "time")
    off = ~frame.time.between(0, LAST_S).to_numpy()
    refuse(path, frame, off, "time", f"seconds, 0 to {LAST_S:g}")
    refuse(path, frame, (frame.num_gpus % 1 != 0).to_numpy(), "num_gpus", "a whole number")
    pairs = {(kind[0], kind[1]) for kind in _KINDS}
    for column, known in zip(("model", "task"), zip(*sorted(pairs), strict=True), strict=True):
        names = sorted(set(known))
        refuse(path, frame, ~frame[column].isin(names).to_numpy(), column, f"one of {names}")
    strange = [pair not in pairs for pair in zip(frame.model, frame.task, strict=True)]
    refuse(path, frame, np.array(strange, dtype=bool), "task", "a task of that model")
    frame = frame.sort_values("time", kind="stable", ignore_index=True)
    made = {"reader": "read_ones", "seed": seed, "nodes": nodes}
    told = [_Row(*row) for row in rows(frame[[*_Row._fields]])]
    return _instance(told, np.random.default_rng(seed), Path(path).stem, "scaled", made)


def _instance(
    told: Sequence[_Row],
    rng: np.random.Generator,
    name: str,
    batch: Batch,
    made: dict[str, Any],
) -> Instance:
    """Return the instance of jobs of the artifact; `made` tells the nodes."""
    cluster = make_cluster(models.LONGHORN_NODE, made["nodes"])
    if (most := int(max(row.num_gpus for row in told))) > cluster.gpus:
        raise InputError("nodes", f"{cluster.gpus} GPUs", f"{most}, for which a job asks")
    profiles: dict[str, Profile] = {}
    jobs = []
    for number, row in enumerate(told):
        growth = round(row.max_lr / row.lr, 6)
        profile = models.profile(row.model, row.task, float(row.batch_size), growth)
        profiles.setdefault(profile.name, profile)
        low, high = models.epochs(row.model, int(row.epoch_size))
        mean, sd = (low + high) / 2, math.sqrt(((high - low + 1) ** 2 - 1) / 12)
        epochs, gpus = float(rng.integers(low, high + 1)), int(row.num_gpus)
        users = max(1, int(min(gpus, growth)))  # the largest batch that max_lr allows on them
        jobs.append(
            Job(
                id=f"{number:04d}",
                submit_s=float(row.time),
                profile=profile.name,
                gpus=gpus,
                min_gpus=1,
                max_gpus=min(4 * gpus, cluster.gpus),  # ONES's hard limit on growth
                batch=float(row.batch_size) * (users if batch == "scaled" else 1),
                epoch=float(row.epoch_size),
                estimate=Estimate(work=mean * row.epoch_size, sd=sd * row.epoch_size),
                truth=Truth(
                    work=epochs * row.epoch_size,
                    curve=row.task,
                    learning=models.learning(row.model, row.task, rng),
                ),
                costs=models.costs(row.model, row.task),
            )
        )
    return Instance(
        name=name,
        cluster=cluster,
        profiles=profiles,
        jobs=tuple(jobs),
        curves={task: models.noise(task) for task in dict.fromkeys(row.task for row in told)},
        cadence=Cadence(period_s=1.0, on_event=False),  # ONES's loop sleeps for a second
        description="ONES workload: jobs as tabulated; speed, convergence and losses are modelled",
        source="Pattern of github.com/kurisusnowdeng/ones_sc21, traces/",
        citation=CITATION,
        made=made | {"user_batch": batch},
    )
