"""The workload of ONES (Bian, Li, Wang, You, SC 2021): short trainings of ten model-task pairs.

The jobs (models, data set sizes, batch sizes, requested GPUs, arrivals) come from tables in the
authors' artifact. Unpublished data are modelled below. The batch that a *user* asks for must be
assumed, because the trace only gives the batch of one GPU. It is not public whether the artifact's
baselines used it on all GPUs of a job together ("base") or on each GPU as far as max_lr allows
("scaled", as ONES itself does).

The models of unpublished data are ours or borrowed, as stated next to each number:

* **speed**: throughput models fitted to ElasticFlow's A100 measurements (`_FIT_OF`); other models
  use the fit of a relative, with computation scaled by the ratio of multiply-adds and
  synchronisation by the ratio of parameters (`_RELATIVES`);
* **epochs to converge** at the base batch: the range that the artifact's job history shows for
  data sets of that size;
* **large batches**: ``epochs(B) = epochs(B0) (phi + B) / (phi + B0)`` (Pollux, OSDI 2021) with a
  constant noise scale phi for each task (`_NOISE`), up to the batch at which the learning rate
  reaches max_lr, which is the largest batch;
* **losses**: curves of the form that Optimus fits, with a random shape for each job;
* **switching**: in place, the times that ElasticFlow measured for the model (`_SCALE_S`); by
  checkpoint, 30 s as in Pollux's simulator (ElasticFlow's restarts take 30 to 60 s).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from msgspec import structs

from ronda.instances.errors import InputError
from ronda.instances.generate.applications import MODELS
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.learning import LearningCurve
from ronda.instances.profile import NoiseCurve, Profile
from ronda.instances.rules.jobs import LAST_S
from ronda.instances.rules.problem import limits, show, too_many
from ronda.instances.rules.profile import LEAST_BATCH, MOST_BATCH
from ronda.instances.traces.rigid import V100_NODE, busy_power, make_cluster

CITATION = (
    "Bian, Li, Wang, You: Online Evolutionary Batch Size Orchestration for Scheduling Deep "
    "Learning Workloads in GPU Clusters, SC 2021, arXiv:2108.03645"
)
MOST_GROWTH = 1024
"""Largest ratio of batch to base batch in a trace; each multiple is one to choose from."""

Batch = Literal["scaled", "base"]
"""The batch that a user asks for (see the text of the module)."""

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
    """A job in the artifact's traces."""

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
    """Return a workload with the pattern of the artifact's ``trace_1``, which has 400 jobs.

    The ten model-task pairs have equal shares and a random order. Data set sizes are drawn from the
    sizes of each pair, and gaps in whole seconds uniformly from 0 to 60 s. The seed also draws the
    epochs.

    Parameters
    ----------
    jobs
        Number of jobs.
    seed
        Random seed; the same seed gives the same jobs.
    nodes
        Number of nodes with 4 GPUs each; ONES had 16.
    batch
        Batch that users ask for: the one that suits all their GPUs ("scaled"), or that of one GPU
        ("base"). Policies that do not choose batches keep it.

    Raises
    ------
    InputError
        If there is no job or node, or the batch is unknown.
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
    one GPU), ``lr``, ``max_lr`` and ``num_gpus``; other columns are ignored. The seed draws the
    number of epochs of each job, which the trace does not give.

    Parameters
    ----------
    path
        Path of the trace.
    seed
        Seed of the numbers of epochs.
    nodes
        Number of nodes with 4 GPUs each.

    Raises
    ------
    InputError
        If a row cannot be a job; the error names file and row.
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
    """Return the instance of the given jobs; `made` has its origin and the number of nodes."""
    cluster = make_cluster(LONGHORN_NODE, made["nodes"])
    if (most := int(max(row.num_gpus for row in told))) > cluster.gpus:
        raise InputError("nodes", f"{cluster.gpus} GPUs", f"{most}, for which a job asks")
    profiles: dict[str, Profile] = {}
    jobs = []
    for number, row in enumerate(told):
        growth = round(row.max_lr / row.lr, 6)
        profile = profile_of(row.model, row.task, float(row.batch_size), growth)
        profiles.setdefault(profile.name, profile)
        low, high = least_and_most_epochs(row.model, int(row.epoch_size))
        mean, sd = (low + high) / 2, math.sqrt(((high - low + 1) ** 2 - 1) / 12)
        epochs, gpus = float(rng.integers(low, high + 1)), int(row.num_gpus)
        users = max(1, int(min(gpus, growth)))  # the largest batch that max_lr allows on the GPUs
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
                    learning=learning(row.model, row.task, rng),
                ),
                costs=costs(row.model, row.task),
            )
        )
    return Instance(
        name=name,
        cluster=cluster,
        profiles=profiles,
        jobs=tuple(jobs),
        curves={task: noise(task) for task in dict.fromkeys(row.task for row in told)},
        cadence=Cadence(period_s=1.0, on_event=False),  # ONES's loop sleeps for a second
        description="ONES workload: jobs as tabulated; speed, convergence and losses are modelled",
        source="Pattern of github.com/kurisusnowdeng/ones_sc21, traces/",
        citation=CITATION,
        made=made | {"user_batch": batch},
    )


# 16 nodes of 4 V100: TACC Longhorn (64 GPUs according to the abstract).
LONGHORN_NODE = replace(V100_NODE, gpus=4)

# The names are those in `MODELS`; here computation is proportional to the clock.
_FIT_OF = {
    "bert": "bert",
    "resnet50": "resnet50",
    "vgg16": "vgg16",
    "inception_v3": "inception3",
}
# (model, task) -> the measured relative; multiply-adds of one sample and parameters, each as a
# share of the relative's (usual counts: 224 pixels for ImageNet, 32 for CIFAR).
_RELATIVES = {
    ("resnet18", "cifar"): ("resnet50", 0.56 / 4.1, 11.2 / 25.6),
    ("vgg16", "cifar"): ("vgg16", 0.31 / 15.5, 14.7 / 138.0),
    ("googlenet", "cifar"): ("inception_v3", 1.5 / 5.7, 6.2 / 23.8),
    ("alexnet", "imagenet"): ("vgg16", 0.71 / 15.5, 61.0 / 138.0),
}
# Seconds of scaling in place: means of the five changes that ElasticFlow measured (its figure 12b).
_SCALE_S = {"bert": 3.63, "resnet50": 1.58, "vgg16": 2.28, "inception_v3": 1.42}
_RESTART_S = 30.0
# Noise scale in samples: at 16 times the base batch (BERT: 4 times) it costs as many samples as
# the curves that Pollux's artifact measured for CIFAR-10, ImageNet and BERT, rounded.
_NOISE = {"cifar": 5_500.0, "imagenet": 12_000.0, "cola": 3e3, "mrpc": 3e3, "sst2": 3e3}
# Loss before training: ln(classes) with 10, 1,000 and 2 classes; the artifact's target accuracy.
_INITIAL_LOSS = {"cifar": math.log(10), "imagenet": math.log(1000)}
_TARGET = {"cola": 0.8, "mrpc": 0.8, "sst2": 0.9, "cifar": 0.7, "imagenet": 0.55}
_ALEXNET_TARGET = 0.25


def profile_of(model: str, task: str, batch: float, growth: float) -> Profile:
    """Return the profile of a model-task pair, whose batches grow with the GPUs up to max_lr."""
    relative, compute, parameters = _RELATIVES.get((model, task), (model, 1.0, 1.0))
    measured = structs.replace(MODELS[_FIT_OF[relative]], phi=1.0)
    shares = dict.fromkeys(("alpha_r_s", "beta_r_s", "alpha_n_s", "beta_n_s"), parameters)
    speed = structs.replace(
        measured,
        **{
            name: float(f"{getattr(measured, name) * share:.4g}")
            for name, share in ({"beta_c_s": compute} | shares).items()
        },
    )
    return Profile(
        name=f"{model}-{task}-{batch:g}",
        throughput={LONGHORN_NODE.gpu.name: speed},
        power=busy_power(LONGHORN_NODE),
        base_batch=batch,
        batches=tuple(batch * k for k in range(1, max(1, int(growth)) + 1)),
        source=f"stand-in: {relative} on A100 (ElasticFlow, ASPLOS 2023), scaled by size",
    )


def noise(task: str) -> NoiseCurve:
    """Return the constant noise scale of a task."""
    return NoiseCurve(until=(1.0,), batches=(1.0,), scale=((_NOISE[task],),))


def learning(model: str, task: str, rng: np.random.Generator) -> LearningCurve:
    """Return a job's learning curve with a random shape, so that runs of a model differ."""
    initial = _INITIAL_LOSS.get(task, math.log(2))
    target = _ALEXNET_TARGET if model == "alexnet" else _TARGET[task]
    return LearningCurve(
        initial_loss=round(initial, 4),
        final_loss=round(initial * float(rng.uniform(0.1, 0.4)), 4),
        final_accuracy=round(min(0.99, target * float(rng.uniform(1.0, 1.1))), 4),
        steepness=round(9.0 * float(rng.lognormal(0.0, 0.4)), 3),
        noise=0.02,
        seed=int(rng.integers(2**31)),
    )


def costs(model: str, task: str) -> Costs:
    """Return the costs of scaling a job in place and of resuming it from a checkpoint."""
    relative = _RELATIVES.get((model, task), (model,))[0]
    return Costs(restart_s=_RESTART_S, scale_s=_SCALE_S[relative])


def least_and_most_epochs(model: str, epoch_size: int) -> tuple[int, int]:
    """Return the fewest and most epochs of jobs with a data set of such a size in the history."""
    if model == "bert":
        return 5, 6
    if epoch_size >= 40_000:
        return 22, 36
    return (36, 69) if epoch_size >= 20_000 else (11, 50)
