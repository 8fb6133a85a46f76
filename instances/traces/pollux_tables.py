"""Pollux's measurements as profiles: step times by placement, gradient noise by batch size."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ronda.instances.errors import InputError
from ronda.instances.profile import NoiseCurve, Tabular
from ronda.instances.traces.table import read_columns, refuse, to_number

# Where the measured squared gradient is zero the noise scale is infinite; any scale this large
# gives an efficiency of 1.
_LARGEST_SCALE = 1e9
# Batch sizes to choose from: three to a doubling.
_GRID = 2.0 ** (1 / 3)


def read_numbers(path: Path, names: str, numbers: str) -> pd.DataFrame:
    """Read text columns and columns of numbers (both separated by blanks) of a CSV file."""
    columns = [*names.split(), *numbers.split()]
    frame = read_columns(path, {name: (name,) for name in columns})
    for column in numbers.split():
        frame[column] = to_number(path, frame, column)
        refuse(path, frame, (frame[column] < 0).to_numpy(), column, "0 or more")
    return frame


def read_steps(folder: Path) -> pd.DataFrame:
    """Return all measured steps: app, gpus, nodes, local_bsz, step_time, sync_time (s).

    Placements with the same number of GPUs and nodes (as 13 and 22) are averaged; where both
    files have a shape, both count.
    """
    times = "local_bsz step_time sync_time"
    path = folder / "placements_aws_t4.csv.gz"
    near = read_numbers(path, "app placement", times)
    odd = ~near.placement.str.fullmatch("[1-9]+").to_numpy()
    refuse(path, near, odd, "placement", "GPUs per node, as 1, 24 or 444")
    near["nodes"] = near.placement.str.len()
    near["gpus"] = near.placement.map(lambda digits: sum(map(int, digits)))
    path = folder / "scalability_aws_t4.csv.gz"
    wide = read_numbers(path, "app", f"num_nodes num_replicas {times}")
    wide = wide.rename(columns={"num_nodes": "nodes", "num_replicas": "gpus"})
    keys = ["app", "gpus", "nodes", "local_bsz"]
    both = pd.concat([near, wide])[[*keys, "step_time", "sync_time"]]
    return both.groupby(keys, as_index=False).mean().astype({"gpus": int, "nodes": int})


def tabular(steps: pd.DataFrame) -> Tabular:
    """Return an application's steps as a table.

    Between two measured numbers of nodes of the same number of GPUs, times are interpolated
    linearly at each local batch that both have, as in Pollux's own simulator; so a job that is
    scattered over an unmeasured number of nodes has a speed too.
    """
    steps = steps.sort_values("nodes")
    measured = steps[["gpus", "nodes", "local_bsz", "step_time", "sync_time"]].to_numpy(float)
    rows = [measured]
    for at in steps.groupby(["gpus", "local_bsz"]).indices.values():
        _, known, _, *times = measured[at].T
        between = np.setdiff1d(np.arange(known[0], known[-1]), known)
        among = np.repeat(measured[at[:1]], len(between), axis=0)
        among[:, 1] = between
        among[:, 3:] = np.column_stack([np.interp(between, known, column) for column in times])
        rows.append(among)
    table = np.vstack(rows)
    table = table[np.lexsort(table.T[2::-1])]
    return Tabular(
        gpus=tuple(int(x) for x in table[:, 0]),
        nodes=tuple(int(x) for x in table[:, 1]),
        local_batch=tuple(table[:, 2].tolist()),
        step_s=shorten(table[:, 3]),
        sync_s=shorten(table[:, 4]),
    )


def shorten(values: Any) -> tuple[float, ...]:
    """Return numbers with six significant digits: less than the spread of any measurement."""
    return tuple(float(f"{value:.6g}") for value in np.asarray(values, float))


def batch_grid(batches: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, ...]:
    """Return whole batch sizes from the smallest to the largest, about three to a doubling.

    All validated sizes (each twice the one before) are among them.
    """
    low, high = float(batches.min()), float(batches.max())
    count = round(np.log(high / low) / np.log(_GRID))
    return tuple(float(round(low * _GRID**k)) for k in range(count + 1))


def read_validation(folder: Path) -> pd.DataFrame:
    """Return the runs behind statistical efficiency: app, global_bsz, epoch, progress, grad_*."""
    numbers = "global_bsz epoch progress grad_sqr grad_var"
    return read_numbers(folder / "statistical_efficiency.csv.gz", "app", numbers)


def noise_curve(runs: pd.DataFrame, epochs: int) -> NoiseCurve:
    """Return how an application's gradient noise scale develops with its progress.

    With B0 the smallest validated batch, the scale of epoch e at batch B is B0 grad_var / grad_sqr,
    both interpolated linearly in B between validated batch sizes. An epoch ends when statistical
    progress (steps at B0) reaches the least progress that any run had at its end; the work done by
    then is that progress x B0 samples. Runs with fewer epochs are refused.
    """
    tables = {
        column: runs.pivot(index="epoch", columns="global_bsz", values=column)
        for column in ("progress", "grad_sqr", "grad_var")
    }
    progress = tables["progress"]
    if len(progress) < epochs or progress.iloc[:epochs].isna().to_numpy().any():
        found = f"{len(progress)} epochs of {runs.app.iloc[0]!r}"
        raise InputError("statistical_efficiency.csv.gz", found, f"{epochs} at every batch size")
    measured = progress.columns.to_numpy(float)
    grid = batch_grid(measured)
    scale = []
    for epoch in range(epochs):
        sqr, var = (
            np.interp(grid, measured, tables[column].iloc[epoch])
            for column in ("grad_sqr", "grad_var")
        )
        ratio = np.divide(var, sqr, out=np.full(len(grid), np.inf), where=sqr > 0)
        scale.append(shorten(np.minimum(measured[0] * ratio, _LARGEST_SCALE)))
    until = measured[0] * progress.iloc[:epochs].min(axis=1).to_numpy()
    return NoiseCurve(until=tuple(until.tolist()), batches=grid, scale=tuple(scale))
