"""Searches for hyper-parameters whose losses were measured: TaskSet, and Titan's fine-tunings."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.learning import Losses, Sweep
from ronda.instances.profile import PowerCurve, Profile, Tabular, rigid_profile

V100 = GpuType(name="V100", memory_gib=16.0, idle_w=30.0)
BUSY = {"V100": PowerCurve(a_w=300.0)}
NODES, GPUS_PER_NODE = 2, 4

TASKSET_REPORTS, TASKSET_REPORT_S, CONFIGURATIONS = 50, 60.0, 100
TASKSET = {
    "imdb_patch128_LSTM128_avg_bs64": "lstm-avg",
    "imdb_patch32_GRU64_avg_bs128": "gru",
    "imdb_patch32_IRNN64_relu_last_bs128": "irnn",
    "imdb_patch32_LSTM128_bs128": "lstm",
}
"""Tasks of TaskSet, and what their sweeps are called."""

TITAN_REPORTS = 10
TITAN = {
    ("roberta-base", "mrpc", "eval_f1"): (3668, 1.0),
    ("roberta-base", "stsb", "eval_pearson"): (5749, 1.0),
    ("roberta-base", "sst2", "eval_accuracy"): (67349, 0.5),
    ("vit", "cifar100", "eval_accuracy"): (50000, 0.99),
    ("vit", "fashion_mnist", "eval_accuracy"): (60000, 0.9),
    ("vit", "food101", "eval_accuracy"): (75750, 0.99),
}
"""Model, task and metric; samples of its training set, and 1 - metric of one who has not learnt."""

_POWER = (
    "Power is an assumption: 30 W for an idle and 300 W for a busy V100 (data sheet); nothing of "
    "it was measured."
)


def taskset(source: Path) -> Instance:
    """Return four searches over Adam's parameters for text classifiers."""
    folder = _folder(source, "taskset")
    table = pd.read_csv(folder / "valid_loss_curves.csv.gz")
    table = table[table["config_id"] < CONFIGURATIONS]
    columns = [f"v{k}" for k in range(TASKSET_REPORTS + 1)]
    jobs: list[Job] = []
    for k, (task, sweep) in enumerate(TASKSET.items()):
        own = table[table["task"] == task].sort_values("config_id")
        for config, losses in zip(own["config_id"], own[columns].to_numpy(), strict=True):
            jobs.append(
                Job(
                    id=f"{sweep}-{config:02d}",
                    submit_s=k * 4 * 3600.0,
                    profile="rigid",
                    epoch=TASKSET_REPORT_S,
                    name=f"{task} {config}",
                    sweep=sweep,
                    estimate=Estimate(work=TASKSET_REPORTS * TASKSET_REPORT_S),
                    truth=Truth(work=TASKSET_REPORTS * TASKSET_REPORT_S, learning=_known(losses)),
                )
            )
    return Instance(
        name="sweep-taskset",
        cluster=_cluster(),
        profiles={"rigid": _with_power(rigid_profile("V100"))},
        jobs=tuple(jobs),
        sweeps={sweep: Sweep(reports=TASKSET_REPORTS) for sweep in TASKSET.values()},
        costs=Costs(restart_s=10.0),
        cadence=Cadence(on_report=True),
        description=(
            f"TaskSet: four searches of {CONFIGURATIONS} configurations of Adam each, for text "
            "classifiers on 2 nodes of 4 V100; losses as they were measured\n"
            "Measured: the validation loss at 51 equally spaced points of 10,000 steps; the first "
            "is that before training. The first 100 configurations of the four tasks are taken. "
            "MADE: 60 s from one report to the next (there are no times), a preemption of 10 s, "
            "one search every four hours. Most configurations learn nothing at all (a loss of "
            f"ln 2), some diverge. {_POWER}"
        ),
        source="TaskSet (Google Research), by way of github.com/releaunifreiburg/DPL",
        licence="Apache-2.0",
        citation=(
            "Metz et al., Using a thousand optimization tasks to learn hyperparameter search "
            "strategies, 2020; Kadra et al., Scaling Laws for Hyperparameter Optimization, "
            "NeurIPS 2023"
        ),
        made={"recipe": "sweep-taskset", "configurations": CONFIGURATIONS},
    )


def titan(source: Path) -> Instance:
    """Return six searches over learning rate and batch of fine-tunings that can use 1 to 4 GPUs."""
    folder = _folder(source, "titan_fm")
    table = pd.read_csv(folder / "hpo_learning_curves.csv.gz")
    placements = pd.read_csv(folder / "placements.csv.gz", dtype={"placement": str})
    jobs: list[Job] = []
    for k, ((model, task, metric), (samples, chance)) in enumerate(TITAN.items()):
        chosen = (table["model"] == model) & (table["task"] == task) & (table["run"] == 0)
        own = table[chosen & (table["metric"] == metric)]
        grid = own.groupby(["lr", "global_batch_size"], sort=True)
        for n, ((rate, batch), rows) in enumerate(grid):
            values = rows.sort_values("epoch")["value"].to_numpy()
            if len(values) != TITAN_REPORTS:
                raise InputError(f"{task}, {rate}, {batch}", f"{len(values)} epochs", "10")
            jobs.append(
                Job(
                    id=f"{task}-{n:02d}",
                    submit_s=k * 1800.0,
                    profile=model,
                    min_gpus=1,
                    max_gpus=GPUS_PER_NODE,
                    batch=float(rows["global_batch_size"].iloc[0]),
                    epoch=float(samples),
                    name=f"{model} {task} lr={rate:g} batch={batch}",
                    sweep=task,
                    estimate=Estimate(work=float(TITAN_REPORTS * samples)),
                    truth=Truth(
                        work=float(TITAN_REPORTS * samples),
                        learning=_known(np.append(chance, (1 - values).round(6))),
                    ),
                )
            )
    return Instance(
        name="sweep-titan",
        cluster=_cluster(),
        profiles={m: _profile(m, placements) for m in ("roberta-base", "vit")},
        jobs=tuple(jobs),
        sweeps={task: Sweep(reports=TITAN_REPORTS) for _, task, _ in TITAN},
        costs=Costs(restart_s=20.0),
        cadence=Cadence(on_report=True),
        description=(
            "Titan: six searches of 28 configurations each, fine-tunings of RoBERTa and ViT on 2 "
            "nodes of 4 V100, with measured losses and scaling\n"
            "Measured: accuracy, F1 or Pearson's r after each of 10 epochs (the loss is 1 - that) "
            "over 7 learning rates and 4 batches, and step times of the same models on 1 to 4 "
            "GPUs of one node. Epochs have the samples of the public training sets (what Titan "
            "sampled of large ones is not documented). MADE: the loss before training, that of a "
            "guess; a preemption of 20 s; one search every half hour. The batch is the "
            f"configuration's own, whatever the GPUs. {_POWER}"
        ),
        source="Titan (SoCC 2022), github.com/gaow0007/TitanSched",
        licence="MIT",
        citation=(
            "Gao et al., Titan: a scheduler for foundation model fine-tuning workloads, SoCC 2022"
        ),
        made={"recipe": "sweep-titan"},
    )


def _folder(source: Path, name: str) -> Path:
    folder = source / name
    if not folder.is_dir():
        raise InputError(str(folder), "no such folder", "the public data of that name")
    return folder


def _cluster() -> Cluster:
    nodes = NodeGroup(name="nodes", count=NODES, gpus_per_node=GPUS_PER_NODE, gpu_type="V100")
    return Cluster(gpu_types=(V100,), node_groups=(nodes,))


def _with_power(profile: Profile) -> Profile:
    return Profile(name=profile.name, throughput=profile.throughput, power=BUSY)


def _known(losses: Iterable[float]) -> Losses:
    """Return losses with None from the first on that is not finite."""
    known = [float(loss) for loss in losses]
    lost = next((k for k, loss in enumerate(known) if not np.isfinite(loss)), len(known))
    return (*known[:lost], *(None,) * (len(known) - lost))


def _profile(model: str, placements: pd.DataFrame) -> Profile:
    """Return the measured step times of a model on GPUs of one node."""
    own = placements[(placements["gpu"] == "V100") & (placements["model"] == model)]
    own = own[own["placement"].isin([str(n) for n in range(1, GPUS_PER_NODE + 1)])]
    own = own.astype({"placement": int}).sort_values(["placement", "local_bsz"])
    return Profile(
        name=model,
        throughput={
            "V100": Tabular(
                gpus=tuple(own["placement"].tolist()),
                nodes=(1,) * len(own),
                local_batch=tuple(own["local_bsz"].astype(float).tolist()),
                step_s=tuple(own["step_time"].round(6).tolist()),
                sync_s=tuple(own["sync_time"].round(6).tolist()),
            )
        },
        power=BUSY,
        base_batch=16.0,
        source="github.com/gaow0007/TitanSched, V100",
    )
