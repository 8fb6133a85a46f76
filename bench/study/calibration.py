"""Trust in predicted progress: ``python -m ronda.bench.study.calibration --out FOLDER``.

Trains predictors (`ronda.formulations.prediction.progress`) on finished jobs of the packaged
learning curves and holds their Beta distributions against jobs that they have not seen: other
configurations of the same tasks, and other tasks. Writes ``calibration.png``, ``.csv`` and
``.json``; prints a table.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import numpy as np
from scipy.special import betainc, betaln

from ronda.bench.study.learning_curves import Log, logs, packaged, read
from ronda.bench.study.sruf_snapshot import LIMITS, optimum, snapshot
from ronda.formulations.prediction.progress import EPOCHS, BetaProgress, ProgressPredictor
from ronda.formulations.prediction.training import Training
from ronda.instances.arrays import Floats
from ronda.instances.files.storage import store

FEWEST_EPOCHS = 2
"""ONES predicts a job only after so many epochs."""

LEVELS = np.linspace(0.05, 0.95, 19)
SPLITS = ("new configurations", "new tasks")
INTENDED, ARTIFACT, SAME = METHODS = ("intended", "artifact", "same b for all")
SAMPLES = (1, 8, 64)
ROUNDS, JOBS, GPUS = 200, 40, 64


@dataclass(frozen=True, slots=True)
class Calibration:
    """How one method does on one split.

    Attributes
    ----------
    split, method, train_rows, test_rows
        What was trained, and on what it was tested.
    log_density
        Mean log density at the true progress; more is better.
    mean_error
        Mean absolute error of E[rho].
    calibration_error
        Mean over `LEVELS` of the distance between the level and the share of jobs' true progress
        below that quantile.
    coverage_80, width_80
        Share of true progress within the central 80 % interval, and its mean width.
    shares
        (19,) the shares at `LEVELS`.
    """

    split: str
    method: str
    train_rows: int
    test_rows: int
    log_density: float
    mean_error: float
    calibration_error: float
    coverage_80: float
    width_80: float
    shares: tuple[float, ...]


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
    training = Training(artifact=method == ARTIFACT)
    fitted = ProgressPredictor.fit(train.rows, train.progress, seed=seed, training=training)
    return fitted.predict(test.rows)


def judge(belief: BetaProgress, truth: Floats) -> dict[str, float | tuple[float, ...]]:
    """Return the measures of `Calibration` for beliefs and the true progress."""
    a, b = belief.a, belief.b
    density = (a - 1) * np.log(truth) + (b - 1) * np.log1p(-truth) - betaln(a, b)
    rank = betainc(a, b, truth)
    shares = (rank[:, None] <= LEVELS).mean(axis=0)
    low, high = belief.quantile([0.1, 0.9])
    return {
        "log_density": float(density.mean()),
        "mean_error": float(np.abs(belief.mean() - truth).mean()),
        "calibration_error": float(np.abs(shares - LEVELS).mean()),
        "coverage_80": float(((low <= truth) & (truth <= high)).mean()),
        "width_80": float((high - low).mean()),
        "shares": tuple(shares.tolist()),
    }


def calibrate(log: Log, seed: int = 0) -> list[Calibration]:
    """Return how every method does on every split."""
    found = []
    for split in SPLITS:
        train, test = divide(log, split, seed)
        for method in METHODS:
            measures = judge(believe(method, train, test, seed), test.progress)
            made = {"split": split, "method": method, "train_rows": len(train)}
            found.append(
                msgspec.convert(made | {"test_rows": len(test)} | measures, type=Calibration)
            )
    return found


def sampling_loss(log: Log, seed: int = 0) -> dict[str, float]:
    """Return how much worse than with known progress schedules score, by what they are based on.

    Rounds of 40 running jobs drawn from the test rows of new configurations on 64 GPUs (speed-up
    c^p, p from U(0.55, 0.95), limits of 1 to 16 GPUs): the schedule of least SRUF score on sampled
    progress is scored at the true one, relative to the best. Mean over 200 rounds.
    """
    train, test = divide(log, SPLITS[0], seed)
    belief = believe(INTENDED, train, test, seed)
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
        best = float(truth.score(optimum(truth)))
        for name, factor in guesses.items():
            score = float(truth.score(optimum(snapshot(done * factor, speed, GPUS))))
            losses.setdefault(name, []).append(score / best - 1.0)
    return {name: float(np.mean(each)) for name, each in losses.items()}


def table(found: Sequence[Calibration], losses: dict[str, float]) -> str:
    """Return both tables in Markdown."""
    lines = [
        "| held out | predictor | mean log density | error of the mean | calibration error | in 80 % interval | its width |",  # noqa: E501
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {c.split} | {c.method} | {c.log_density:.3f} | {c.mean_error:.3f} | "
        f"{c.calibration_error:.3f} | {c.coverage_80:.0%} | {c.width_80:.2f} |"
        for c in found
    ]
    lines += ["", "| schedule by | score above that of known progress |", "| --- | --- |"]
    lines += [f"| {name} | {loss:.1%} |" for name, loss in losses.items()]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Calibrate, draw and print."""
    from ronda.bench.study.calibration_figure import draw

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for picture and numbers")
    parser.add_argument("--curves", type=Path, help="CSV of curves; else the packaged ones")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    log = logs(read(asked.curves) if asked.curves else packaged())
    found, losses = calibrate(log, asked.seed), sampling_loss(log, asked.seed)
    asked.out.mkdir(parents=True, exist_ok=True)
    draw(found, asked.out / "calibration")
    whole = {"calibration": [asdict(c) for c in found], "sampling_loss": losses}
    store(asked.out / "calibration.json", msgspec.json.format(msgspec.json.encode(whole)) + b"\n")
    sys.stdout.write(table(found, losses))


if __name__ == "__main__":
    main()
