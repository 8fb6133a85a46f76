"""Columns of a table of measurements: their names, and their values as checked numbers."""

from pathlib import Path

import numpy as np
import pandas as pd

from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.errors import InputError
from ronda.instances.traces.table import read_columns, refuse, to_number

APPLICATION = {
    "dataset": ("dataset",),
    "model": ("model", "network", "app", "application"),
    "optimizer": ("optimizer",),
}
"""Together they name the application, as ``squad-bert_base_uncased-adamw``; all may be missing."""

GPU = {"gpu_type": ("gpu_type", "gpu")}

THROUGHPUT = {
    "gpus": ("gpus", "num_gpus", "num_replicas", "workers"),
    "nodes": ("nodes", "num_nodes"),
    "local_batch": ("local_batch", "local_bsz", "batch_per_gpu"),
    "global_batch": ("global_batch", "global_batch_size", "global_bsz", "batch_size", "batch"),
    "step_s": ("step_s", "step_time", "iteration_s", "time_s"),
    "iters_per_s": ("iters_per_s", "iterations_per_s", "steps_per_s"),
    "samples_per_s": ("samples_per_s", "throughput"),
    "sync_s": ("sync_s", "sync_time"),
    "passes": ("passes",),
    "clock": ("clock", "relative_clock"),
}
"""Columns of a table of iterations, and the headers that they may have."""

POWER = {
    "power_w": ("power_w", "average_power", "watts", "power"),
    "speed": ("speed", "relative_speed", "clock"),
    "time_s": ("time_s", "time_per_epoch", "epoch_s", "step_s", "step_time"),
    "cap_w": ("cap_w", "power_limit", "power_cap"),
    "batch": ("batch", "batch_size", "local_batch", "global_batch_size"),
}
"""Columns of a table of watts, and the headers that they may have."""


class Columns:
    """Some rows of a table, column by column.

    Parameters
    ----------
    path
        The file.
    names
        `THROUGHPUT` or `POWER`.
    frame
        Text from `read_table`.
    """

    def __init__(
        self, path: str | Path, names: dict[str, tuple[str, ...]], frame: pd.DataFrame
    ) -> None:
        self.path, self._names, self._frame = path, names, frame
        self._headers: dict[str, str] = frame.attrs["headers"]

    @property
    def row(self) -> Rows:
        """Lines in the file."""
        return self._frame["row"].to_numpy()

    def has(self, column: str) -> bool:
        """Return whether the table has a column."""
        return column in self._headers

    def without(self, rows: Mask) -> "Columns":
        """Return the table without some rows."""
        rest = self._frame[~rows]
        rest.attrs["headers"] = self._headers
        return Columns(self.path, self._names, rest)

    def first(self, *columns: str) -> str:
        """Return the first of some columns that the table has.

        Raises
        ------
        InputError
            If it has none of them.
        """
        for column in columns:
            if self.has(column):
                return column
        wanted = " or ".join(repr(name) for column in columns for name in self._names[column][:2])
        raise InputError(f"{self.path}, header", self._known(), f"a column {wanted}")

    def missing(self, column: str, remedy: str) -> InputError:
        """Return the error that a column is missing, with another way than to add it."""
        return InputError(
            f"{self.path}, header", self._known(), f"a column {column!r}, or {remedy}"
        )

    def _known(self) -> str:
        """Say which columns there are."""
        return f"only {', '.join(map(repr, self._headers.values())) or 'columns of other names'}"

    def numbers(self, column: str) -> Floats:
        """Return a column of finite numbers."""
        return to_number(self.path, self._as_written(column), self._headers[column]).to_numpy()

    def positive(self, column: str, *, default: float | None = None, whole: bool = False) -> Floats:
        """Return a column of numbers above 0; where it is missing, the default if there is one."""
        if default is not None and not self.has(column):
            return np.full(len(self._frame), default)
        values = self.numbers(self.first(column))
        self.refuse(column, values <= 0, "a number above 0")
        if whole:
            self.refuse(column, values % 1 != 0, "a whole number")
        return values

    def refuse(self, column: str, bad: Mask, expected: str) -> None:
        """Refuse the first row where `bad` holds, if any."""
        refuse(self.path, self._as_written(column), bad, self._headers[column], expected)

    def _as_written(self, column: str) -> pd.DataFrame:
        """Return the table with a column under its own header, for errors."""
        header = self._headers[column]
        return self._frame[[column, "row"]].rename(columns={column: header})


def read_table(path: str | Path, names: dict[str, tuple[str, ...]]) -> pd.DataFrame:
    """Read all known columns of a CSV file as text; ``attrs["headers"]`` tells which are there.

    Raises
    ------
    InputError
        If the file cannot be read, is no CSV or has no rows.
    """
    aliases = {**APPLICATION, **GPU, **names}
    try:
        return read_columns(path, aliases, aliases)
    except InputError as error:
        if error.found == "no rows":
            raise InputError(error.place, "no rows", "at least one measurement") from None
        raise
