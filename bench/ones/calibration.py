"""How far predicted training progress can be trusted.

Trains predictors (`ronda.formulations.prediction.progress`) on finished jobs of the packaged
learning curves and holds their Beta distributions against jobs that they have not seen: other
configurations of the same tasks, and other tasks. With several seeds, each of which holds out
other jobs, table and picture show means.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from matplotlib.ticker import PercentFormatter
from scipy.special import betainc, betaln

from ronda.bench.figures.style import colour, marker, new_figure, save, tidy
from ronda.bench.ones.learning_curves import Log, logs, read
from ronda.bench.ones.sruf import LIMITS, optimum, snapshot
from ronda.bench.study.harness import Folder, markdown, option, seeds, study
from ronda.formulations.prediction.progress import EPOCHS, BetaProgress, ProgressPredictor
from ronda.instances.arrays import Floats

FEWEST_EPOCHS = 2
"""ONES predicts a job only after this many epochs."""

LEVELS = np.linspace(0.05, 0.95, 19)
SPLITS = ("new configurations", "new tasks")
INTENDED, ARTIFACT, SAME = METHODS = ("intended", "artifact", "same b for all")
SAMPLES = (1, 8, 64)
ROUNDS, JOBS, GPUS = 200, 40, 64


def divide(log: Log, split: str, seed: int) -> tuple[Log, Log]:
    """Return the rows to train on and those to test on; no job is in both.

    A third is held out: of the jobs, or of the tasks.
    """
    group = log.job if split == SPLITS[0] else log.task
    names = np.random.default_rng(seed).permutation(np.unique(group))
    held = np.isin(group, names[: max(1, len(names) // 3)])
    late = log.rows[:, EPOCHS] >= FEWEST_EPOCHS
    return log[~held], log[held & late]


def believe(method: str, train: Log, test: Log, seed: int) -> BetaProgress:
    """Return what a method believes of the test rows."""
    if method == SAME:
        a = train.rows[:, EPOCHS]
        to_come = float(np.mean(a * (1.0 / train.progress - 1.0)))
        return BetaProgress(test.rows[:, EPOCHS], np.full(len(test), to_come))
    artifact = method == ARTIFACT
    fitted = ProgressPredictor.fit(train.rows, train.progress, seed=seed, artifact=artifact)
    return fitted.predict(test.rows)


def judge(belief: BetaProgress, truth: Floats) -> dict[str, Any]:
    """Hold beliefs against the true progress.

    `log_density` is the mean at the true progress, `mean_error` of E[rho]; `shares` are of true
    progress below each quantile of `LEVELS`, `calibration_error` is their mean distance from
    these; `coverage_80, width_80` are of the central 80 % interval.
    """
    a, b = belief.a, belief.b
    density = (a - 1) * np.log(truth) + (b - 1) * np.log1p(-truth) - betaln(a, b)
    shares = (betainc(a, b, truth)[:, None] <= LEVELS).mean(axis=0)
    low, high = belief.quantile([0.1, 0.9])
    return {
        "log_density": float(density.mean()),
        "mean_error": float(np.abs(belief.mean() - truth).mean()),
        "calibration_error": float(np.abs(shares - LEVELS).mean()),
        "coverage_80": float(((low <= truth) & (truth <= high)).mean()),
        "width_80": float((high - low).mean()),
        "shares": shares.tolist(),
    }


def sampling_loss(belief: BetaProgress, test: Log, seed: int) -> dict[str, float]:
    """Return how much worse than with known progress schedules score, by what they are based on.

    Rounds of 40 running jobs drawn from the test rows on 64 GPUs (speed-up c^p, p from
    U(0.55, 0.95), limits of 1 to 16 GPUs): the schedule of least SRUF score on sampled progress is
    scored at the true one, relative to the best. Mean over 200 rounds.
    """
    rng = np.random.default_rng(seed)
    counts = np.arange(1, max(LIMITS) + 1)
    losses: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        at = rng.choice(len(test), JOBS, replace=False)
        done = test.rows[at, EPOCHS]
        speed = np.where(
            counts <= rng.choice(LIMITS, (JOBS, 1)),
            counts ** rng.uniform(0.55, 0.95, (JOBS, 1)),
            0.0,
        )
        here = BetaProgress(belief.a[at], belief.b[at])
        guesses = {f"{n} sample{'s' if n > 1 else ''}": here.work_left(rng, n) for n in SAMPLES}
        guesses |= {"expected": here.expected_work_left(), "at the mean": here.b / here.a}
        truth = snapshot(done * (1.0 / test.progress[at] - 1.0), speed, GPUS)
        best = truth.score(optimum(truth))
        for name, factor in guesses.items():
            score = truth.score(optimum(snapshot(done * factor, speed, GPUS)))
            losses.setdefault(name, []).append(score / best - 1.0)
    return {name: float(np.mean(each)) for name, each in losses.items()}


@lru_cache(maxsize=1)
def _log(curves: str) -> Log:
    return logs(read(Path(curves) if curves else None))


def measure(seed: int, split: str, method: str, curves: str) -> dict[str, Any]:
    """Train one predictor and hold it against one split of the curves (empty: the packaged)."""
    train, test = divide(_log(curves), split, seed)
    belief = believe(method, train, test, seed)
    found = {"train_rows": len(train), "test_rows": len(test), **judge(belief, test.progress)}
    if (split, method) == (SPLITS[0], INTENDED):
        found["losses"] = sampling_loss(belief, test, seed)
    return found


MEASURES = {
    "log_density": ("mean log density", ".3f"),
    "mean_error": ("error of the mean", ".3f"),
    "calibration_error": ("calibration error", ".3f"),
    "coverage_80": ("in 80 % interval", ".0%"),
    "width_80": ("its width", ".2f"),
}
"""Columns of the table, with their formats."""


def table(lines: pd.DataFrame) -> str:
    """Return the means over seeds of all measures and losses, in Markdown."""
    rows = []
    for (split, method), own in lines.groupby(["split", "method"], sort=False):
        means = (f"{own[name].mean():{form}}" for name, (_, form) in MEASURES.items())
        rows.append([f"{split}", f"{method}", *means])
    header = ["held out", "predictor", *(title for title, _ in MEASURES.values())]
    made = markdown(header, rows, words=2)
    if "losses" not in lines:
        return made
    losses = pd.DataFrame(list(lines.losses.dropna())).mean().items()
    head = ["schedule by", "score above that of known progress"]
    return f"{made}\n{markdown(head, [[str(name), f'{loss:.1%}'] for name, loss in losses])}"


def draw(lines: pd.DataFrame, folder: Folder) -> None:
    """Draw, for each split, the share of jobs below each predicted quantile."""
    splits = lines.groupby("split", sort=False)
    figure = new_figure(4.4 * len(splits), 4.5)
    rows = []
    panels = figure.subplots(1, len(splits), squeeze=False)[0]
    for axes, (split, own) in zip(panels, splits, strict=True):
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", label="calibrated")
        for index, (method, each) in enumerate(own.groupby("method", sort=False)):
            shares = np.mean(each.shares.tolist(), axis=0)
            label = f"{method} ({each.calibration_error.mean():.2f} off)"
            look = {"color": colour(index), "marker": marker(index), "markersize": 3.5}
            axes.plot(LEVELS, shares, linewidth=1.4, label=label, **look)
            pairs = zip(LEVELS.tolist(), shares.tolist(), strict=True)
            rows += [(split, method, f"{level:.2f}", share) for level, share in pairs]
        axes.set_aspect("equal")
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_title(f"held out: {split}", fontsize=10)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0))
        axes.legend(fontsize=8, frameon=False, loc="upper left")
        below = "held-out epochs whose true progress is below it"
        tidy(axes, "predicted quantile of progress", below, grid=True)
    save(figure, folder.path / "calibration", ("split", "method", "level", "share"), rows)


def calibrate(folder: Folder, seeds: Sequence[int], curves: Path | None) -> None:
    """Measure every predictor on every split."""
    place = str(curves.resolve()) if curves else ""
    cases = [
        {"seed": seed, "split": split, "method": method, "curves": place}
        for split, method, seed in product(SPLITS, METHODS, seeds)
    ]
    lines = folder.measure(cases, measure)
    folder.write(table(lines))
    draw(lines, folder)


command = study(
    "calibration",
    __doc__,
    calibrate,
    [
        seeds("0"),
        option(
            "--curves",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="CSV of curves; the packaged ones without.",
        ),
    ],
)
