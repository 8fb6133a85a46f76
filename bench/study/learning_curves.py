"""Packaged learning curves, and what a scheduler would log of jobs that train along them.

As a command it makes the packaged file from the public data (docs/progress.md names source and
licence).
"""

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from ronda.bench.program import CONTEXT
from ronda.formulations.prediction.progress import finished_rows
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError
from ronda.instances.files.storage import load, store, unpack

COLUMNS = ("task", "configuration", "accuracies")
PACKAGED = "learning-curves.csv.gz"
CONFIGURATIONS = 60
"""How many of the source's 200 configurations of each task are packaged."""

PATIENCE, LEAST_GAIN = 5, 0.01
"""ONES's rule: a job ends after 5 epochs in a row that gain less than this on its best."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One training run: `accuracies` (E,) after each epoch, shares in 0..1."""

    task: str
    configuration: str
    accuracies: Floats


@dataclass(frozen=True, slots=True)
class Log:
    """What is known of finished jobs after each of their epochs.

    Attributes
    ----------
    rows, progress
        (N, 5) features and (N,) the share of all epochs that was done then.
    task, job
        (N,) number of the task and of the job in the curves that made them.
    """

    rows: Floats
    progress: Floats
    task: NDArray[np.int64]
    job: NDArray[np.int64]

    def __getitem__(self, at: NDArray[np.bool_] | NDArray[np.int64]) -> "Log":
        """Return some of the rows."""
        return Log(self.rows[at], self.progress[at], self.task[at], self.job[at])

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)


def packaged() -> list[Curve]:
    """Return the packaged curves."""
    data = resources.files("ronda.bench").joinpath("data", PACKAGED).read_bytes()
    return _parse(data, PACKAGED)


def read(path: Path) -> list[Curve]:
    """Return the curves of a CSV file (.csv or .csv.gz) with the columns of `COLUMNS`.

    Raises
    ------
    InputError
        If it cannot be read, has no curve, or an accuracy is no share.
    """
    return _parse(load(path), str(path))


def _parse(data: bytes, place: str) -> list[Curve]:
    text = unpack(data, place).decode("utf-8", errors="replace")
    reader = csv.DictReader(io.StringIO(text))
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise InputError(place, f"no column {missing[0]!r}", "columns " + ", ".join(COLUMNS))
    curves = []
    for number, row in enumerate(reader, start=2):
        try:
            accuracies = np.array(row["accuracies"].split(), dtype=float)
        except (ValueError, AttributeError):
            accuracies = np.array([np.nan])
        if not len(accuracies) or not ((accuracies >= 0) & (accuracies <= 1)).all():
            found = "something else"
            raise InputError(f"{place}:{number}: accuracies", found, "shares from 0 to 1")
        curves.append(Curve(row["task"], row["configuration"], accuracies))
    if not curves:
        raise InputError(place, "no curve", "at least one")
    return curves


def life(accuracies: Floats) -> int | None:
    """Return after how many epochs ONES's patience rule ends a job; None if the curve is shorter.

    An epoch counts against the job if it gains less than `LEAST_GAIN` on the best accuracy so
    far; `PATIENCE` of them in a row end it (artifact, src/training.py; no target accuracy here).
    """
    best, idle = -np.inf, 0
    for epoch, accuracy in enumerate(accuracies.tolist(), start=1):
        if accuracy < best + LEAST_GAIN:
            idle += 1
        else:
            best, idle = accuracy, 0
        if idle >= PATIENCE:
            return epoch
    return None


def logs(curves: Sequence[Curve]) -> Log:
    """Return what jobs that trained along the curves logged; curves that do not end are left out.

    The loss is the share of errors, 1 - accuracy, and the initial loss that of the first epoch:
    the data have no other loss for all epochs. Dataset sizes are not in them either: 1 stands for
    all, so that this feature says nothing.
    """
    tasks = sorted({curve.task for curve in curves})
    parts: list[tuple[Floats, Floats]] = []
    task: list[int] = []
    job: list[int] = []
    for number, curve in enumerate(curves):
        epochs = life(curve.accuracies)
        if epochs is None:
            continue
        accuracies = curve.accuracies[:epochs]
        errors = 1.0 - accuracies
        parts.append(finished_rows(1.0, max(float(errors[0]), 1e-3), errors, accuracies))
        task += [tasks.index(curve.task)] * (epochs - 1)
        job += [number] * (epochs - 1)
    if not parts:
        raise InputError("curves", "none that ends", "at least one that stops gaining")
    rows, progress = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Log(rows, progress, np.array(task), np.array(job))


def convert(source: Path) -> bytes:
    """Return the packaged file's bytes from ``surrogate_curves_12tasks.csv.gz`` in a folder."""
    path = source / "surrogate_curves_12tasks.csv.gz"
    found: dict[tuple[str, int], list[str]] = {}
    text = io.StringIO(unpack(load(path), str(path)).decode())
    for row in csv.DictReader(text):
        configuration = int(row["config_id"])
        if configuration < CONFIGURATIONS:
            accuracies = found.setdefault((row["openml_task"], configuration), [])
            accuracies.append(f"{float(row['val_accuracy']) / 100:.4f}")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((task, number, " ".join(a)) for (task, number), a in found.items())
    return gzip.compress(out.getvalue().encode(), mtime=0)


def make(source: Path, out: Path) -> None:
    """Make the packaged file."""
    store(out, convert(source))


command = click.Command(
    "learning-curves",
    CONTEXT,
    make,
    help=__doc__,
    params=[
        click.Option(
            ["--source"],
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            required=True,
            help="Folder of the public data.",
        ),
        click.Option(
            ["--out"],
            type=click.Path(path_type=Path),
            required=True,
            help="The file to make, .csv.gz.",
        ),
    ],
)
