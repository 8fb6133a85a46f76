"""Packaged learning curves, and what a scheduler would log of jobs that train along them.

As a command it makes the packaged file from the public data (docs/progress.md names source and
licence).
"""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ronda.bench.program import CONTEXT
from ronda.formulations.prediction.progress import finished_rows
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError
from ronda.instances.files.storage import load, store
from ronda.instances.traces.text import cells

COLUMNS = ("task", "configuration", "accuracies")
PACKAGED = "learning-curves.csv.gz"
CONFIGURATIONS = 60
"""How many of the source's 200 configurations of each task are packaged."""

PATIENCE, LEAST_GAIN = 5, 0.01
"""ONES's rule: a job ends after 5 epochs in a row that gain less than this on its best."""


class Curve(NamedTuple):
    """One training run: `accuracies` (E,) after each epoch, shares in 0..1."""

    task: str
    configuration: str
    accuracies: Floats


@dataclass(frozen=True, slots=True)
class Log:
    """What is known of finished jobs after each of their epochs.

    (N, 5) features `rows`, (N,) shares `progress` of all epochs that were done then, and (N,)
    numbers of the `task` and of the `job` in the curves that made them.
    """

    rows: Floats
    progress: Floats
    task: NDArray[np.int64]
    job: NDArray[np.int64]

    def __getitem__(self, at: NDArray[np.bool_]) -> "Log":
        """Return some of the rows."""
        return Log(self.rows[at], self.progress[at], self.task[at], self.job[at])

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)


def read(path: Path | None = None) -> list[Curve]:
    """Return the curves of a CSV file (.csv or .csv.gz) with the columns of `COLUMNS`.

    Without a file these are the packaged ones. An InputError says what the file lacks.
    """
    place = str(path or PACKAGED)
    packaged = resources.files("ronda.bench").joinpath("data", PACKAGED)
    data = load(path) if path else packaged.read_bytes()
    found = _table(data, place, COLUMNS)
    curves = []
    for number, row in zip(found.index, found.itertuples(index=False), strict=True):
        try:
            accuracies = np.array(str(row.accuracies).split(), dtype=float)
        except ValueError:
            accuracies = np.array([np.nan])
        if not len(accuracies) or not ((accuracies >= 0) & (accuracies <= 1)).all():
            expected = "shares from 0 to 1"
            raise InputError(f"{place}:{number}: accuracies", "something else", expected)
        curves.append(Curve(str(row.task), str(row.configuration), accuracies))
    if not curves:
        raise InputError(place, "no curve", "at least one")
    return curves


def _table(data: bytes, place: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return columns of a CSV file as text."""
    found = cells(data, place).frame
    missing = [column for column in columns if column not in found]
    if missing:
        raise InputError(place, f"no column {missing[0]!r}", "columns " + ", ".join(columns))
    return found[list(columns)]


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
    parts = []
    for number, curve in enumerate(curves):
        epochs = life(curve.accuracies)
        if epochs is not None:
            accuracies = curve.accuracies[:epochs]
            errors = 1.0 - accuracies
            made = finished_rows(1.0, max(float(errors[0]), 1e-3), errors, accuracies)
            origin = np.array([tasks.index(curve.task), number])
            parts.append((*made, *np.repeat(origin[:, None], epochs - 1, axis=1)))
    if not parts:
        raise InputError("curves", "none that ends", "at least one that stops gaining")
    return Log(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def make(source: Path, out: Path) -> None:
    """Make the packaged file from ``surrogate_curves_12tasks.csv.gz`` in the folder `source`."""
    path = source / "surrogate_curves_12tasks.csv.gz"
    columns = ("openml_task", "config_id", "val_accuracy")
    found = _table(load(path), str(path), columns)
    found = found[found.config_id.astype(int) < CONFIGURATIONS]
    shares = (found.val_accuracy.astype(float) / 100).map("{:.4f}".format)
    made = shares.groupby([found.openml_task, found.config_id], sort=False).agg(" ".join)
    text = made.rename_axis(COLUMNS[:2]).to_csv(header=[COLUMNS[2]], lineterminator="\n")
    store(out, gzip.compress(text.encode(), mtime=0))


folder = click.Path(path_type=Path, exists=True, file_okay=False)
command = click.Command(
    "learning-curves",
    CONTEXT,
    make,
    help=__doc__,
    params=[
        click.Option(["--source"], type=folder, required=True, help="Folder of the public data."),
        click.Option(
            ["--out"], type=click.Path(path_type=Path), required=True, help="The file, .csv.gz."
        ),
    ],
)
