"""HyperSched against ASHA by a deadline, as in the table of its paper, on made learning curves.

ResNet-50 on CIFAR-10, 8 V100, 144 configurations (9 learning rates, 4 weight decays, 4 momenta).
The scaling over 1, 2, 4 and 8 GPUs is the published one. MADE: 75 s for an epoch on one GPU, a
restart of 10 s, and accuracy as a_inf - A (1 + k)^-c after k epochs, with constants that fall off
with the distance of a configuration from a best one. They were chosen so that ASHA comes near to
its published accuracies and trials; HyperSched's are not fitted.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ronda.bench.figures.style import colour, new_figure, save, tidy
from ronda.bench.study.harness import Folder, markdown, numbers, seeds, study
from ronda.instances.cluster import Cluster, NodeGroup
from ronda.instances.generate.sweeps import BUSY, GPU
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.learning import Sweep
from ronda.instances.outcome.searched import searched
from ronda.instances.profile import Profile, Tabular
from ronda.solvers.horizon.driver import run

POLICIES = ("asha", "hypersched", "sweep")
SCALING = {1: 1.0, 2: 1.87, 4: 3.42, 8: 5.60}
EPOCH_S, SAMPLES, BATCH, REPORTS = 75.0, 50_000.0, 128.0, 100
RESTART_S = 10.0
PUBLISHED = {
    ("asha", 900): (0.833, 0.017, 35),
    ("hypersched", 900): (0.879, 0.017, 14),
    ("asha", 1800): (0.886, 0.016, 51),
    ("hypersched", 1800): (0.916, 0.029, 20),
    ("asha", 3600): (0.908, 0.003, 90),
    ("hypersched", 3600): (0.938, 0.009, 33),
}
"""Accuracy, its spread, and trials (Liaw et al., SoCC 2019)."""


def searching(seed: int, deadline_s: float) -> Instance:
    """Return the 144 configurations in a random order, to be searched by a deadline."""
    rng = np.random.default_rng(seed)
    grid = list(product(range(9), range(4), range(4)))
    jobs = []
    for k, place in enumerate(rng.permutation(len(grid)).tolist()):
        rate, decay, momentum = grid[place]
        off = abs(rate - 5) / 4 + 0.15 * abs(decay - 1) / 2 + 0.1 * abs(momentum - 2) / 2
        last = 0.955 - 0.22 * off**1.5 + rng.normal(0, 0.004)
        speed = max(0.25, 0.9 - 0.35 * off + rng.normal(0, 0.03))
        epochs = np.arange(REPORTS + 1)
        accuracy = last - (last - 0.1) * (1.0 + epochs) ** -speed
        accuracy[1:] += rng.normal(0, 0.004, REPORTS)
        losses = tuple(float(x) for x in (1 - accuracy).round(5))
        jobs.append(
            Job(
                id=f"t{k:03d}",
                submit_s=0.0,
                profile="resnet50",
                min_gpus=1,
                max_gpus=8,
                epoch=SAMPLES,
                sweep="cifar10",
                estimate=Estimate(work=REPORTS * SAMPLES),
                truth=Truth(work=REPORTS * SAMPLES, learning=losses),
            )
        )
    return Instance(
        name="hypersched",
        cluster=Cluster(
            gpu_types=(GPU,),
            node_groups=(NodeGroup(name="node", count=1, gpus_per_node=8, gpu_type=GPU.name),),
        ),
        profiles={"resnet50": resnet50()},
        jobs=tuple(jobs),
        sweeps={"cifar10": Sweep(reports=REPORTS, deadline_s=deadline_s)},
        costs=Costs(restart_s=RESTART_S),
        cadence=Cadence(on_report=True),
    )


def resnet50() -> Profile:
    """Return the profile: the published scaling, one epoch on a GPU as made."""
    step_s = EPOCH_S * BATCH / SAMPLES
    table = Tabular(
        gpus=tuple(SCALING),
        nodes=(1,) * len(SCALING),
        local_batch=tuple(BATCH / n for n in SCALING),
        step_s=tuple(step_s / speed for speed in SCALING.values()),
        sync_s=(0.0,) * len(SCALING),
    )
    power = {GPU.name: BUSY}
    return Profile(name="resnet50", throughput={GPU.name: table}, power=power, base_batch=BATCH)


def measure(policy: str, deadline_s: float, seed: int) -> dict[str, Any]:
    """Return the best accuracy that was reported by the deadline, and the trials begun by then."""
    given = searching(seed, deadline_s)
    schedule = run(given, policy, seed=seed)
    found = searched(given, schedule, "cifar10")
    best = found.best[found.time_s <= deadline_s]
    begun = sum(bool(o.segments) and o.segments[0].start_s < deadline_s for o in schedule.jobs)
    return {"accuracy": 1 - float(best[-1]) if len(best) else 0.0, "trials": begun}


def table(lines: pd.DataFrame) -> str:
    """Return measured and published accuracies and trials."""
    rows = []
    for (_, policy), own in lines.groupby(["deadline_s", "policy"], sort=False):
        deadline_s = float(own["deadline_s"].iloc[0])
        known = PUBLISHED.get((str(policy), round(deadline_s)))
        said = ["", ""] if known is None else [f"{known[0]:.3f} ± {known[1]:.3f}", f"{known[2]}"]
        spread = f"{own.accuracy.mean():.3f} ± {own.accuracy.std(ddof=0):.3f}"
        rows.append(
            [f"{deadline_s:g}", str(policy), spread, said[0], f"{own.trials.mean():.0f}", said[1]]
        )
    header = ["deadline (s)", "policy", "accuracy", "published", "trials", "published"]
    return markdown(header, rows, words=2)


def draw(lines: pd.DataFrame, folder: Folder) -> None:
    """Draw accuracy over the deadline, with the published one."""
    figure = new_figure(6.4, 3.6)
    axes = figure.subplots()
    rows = []
    for k, policy in enumerate(POLICIES):
        own = lines[lines.policy == policy].groupby("deadline_s").accuracy
        mean, spread = own.mean(), own.std(ddof=0)
        axes.errorbar(
            mean.index, mean, spread, color=colour(k), marker="o", capsize=3, label=policy
        )
        rows += [
            (policy, "measured", d, a, s) for d, a, s in zip(mean.index, mean, spread, strict=True)
        ]
        known = {d: found for (name, d), found in PUBLISHED.items() if name == policy}
        if known:
            means = [found[0] for found in known.values()]
            title = f"{policy}, published"
            axes.plot(list(known), means, color=colour(k), marker="s", linestyle="--", label=title)
            rows += [(policy, "published", d, found[0], found[1]) for d, found in known.items()]
    axes.legend(fontsize=8, frameon=False)
    tidy(axes, "deadline (s)", "best accuracy by then", grid=True)
    save(
        figure, folder.path / "hypersched", ("policy", "what", "deadline_s", "accuracy", "sd"), rows
    )


def compare(folder: Folder, seeds: Sequence[int], deadlines: Sequence[float]) -> None:
    """Measure all policies at all deadlines."""
    cases = [
        {"policy": policy, "deadline_s": d, "seed": seed}
        for d, policy, seed in product(deadlines, POLICIES, seeds)
    ]
    lines = folder.measure(cases, measure)
    folder.write(table(lines))
    draw(lines, folder)


command = study(
    "hypersched",
    __doc__,
    compare,
    [seeds("0-9"), numbers("--deadlines", "900,1800,3600", "Seconds.")],
)
