"""Reader of Pollux's workloads (Qiao et al., OSDI 2021; Apache-2.0), which are elastic jobs.

This module also reads Pollux's tables of measured speeds and noise.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ronda.instances.errors import InputError
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.profile import NoiseCurve, Profile, Tabular
from ronda.instances.traces.rigid import T4_NODE, busy_power, make_cluster
from ronda.instances.traces.table import read_columns, refuse, rows, to_number

CITATION = (
    "Qiao, Choe, Subramanya, Neiswanger, Ho, Zhang, Ganger, Xing: Pollux: Co-adaptive Cluster "
    "Scheduling for Goodput-Optimized Deep Learning, OSDI 2021"
)

LICENCE = "Apache-2.0"

# Set by Pollux's simulator: a job of this application stays on one GPU with this batch. On one
# GPU the simulator accumulates at least two steps above the initial batch, hence the local batch.
_NCF, _NCF_LOCAL_BATCH = "ncf", 16_384.0


def read_pollux(
    folder: str | Path,
    *,
    seed: int = 1,
    workload: str = "workloads",
    nodes: int = 16,
) -> Instance:
    """Read a workload of Pollux's simulator, with elastic jobs and measured step times.

    The folder holds ``placements_aws_t4.csv.gz``, ``scalability_aws_t4.csv.gz``,
    ``statistical_efficiency.csv.gz``, ``workloads.csv.gz`` and ``app_constants.json``.

    Speeds come from the measured step times on AWS g4dn.12xlarge nodes (4 T4) by GPUs, nodes and
    local batch. Efficiency follows from the measured gradient noise. A job's work is the equivalent
    of its epochs in samples at the initial batch size. The user declares it, so the estimate is
    exact. Requested GPUs and batches are those of the tuned workload. As in Pollux's simulator, a
    job may grow to 64 GPUs or to the largest batch at the smallest measured local batch, whichever
    is less. ``ncf`` stays on one GPU with its batch. Every start or change costs 30 s.

    The instance differs from Pollux's simulator in four points. Rounds happen every 60 s *and* at
    submissions and completions, not only every 60 s. Speeds are known, whereas Pollux fits them
    during the run and limits growth to twice the largest size seen. Local batches need not be whole
    numbers. On one GPU, gradients are accumulated only if the local batch requires it. Power was
    not measured: a busy T4 draws its limit of 70 W, an idle T4 10 W (data sheet), and a host 150 W
    (assumption).

    The literature uses seeds 1 to 8 of each workload on 16 nodes.

    Parameters
    ----------
    folder
        Folder with the data.
    seed
        Seed that selects the jobs and becomes part of the instance's name.
    workload
        Name of the workload: workloads (160 jobs in 8 hours), 0.5, 1.5 or 2 times its load (as in
        workloads-2.0), or the users' own GPUs and batches (workloads-realistic).
    nodes
        Number of nodes with 4 T4 each.

    Raises
    ------
    InputError
        If a file is missing or malformed, or the workload does not exist.
    """
    folder = Path(folder)
    chosen = _read_workload(folder, workload, seed)
    apps = sorted(set(chosen.application))
    steps, runs, constants = read_steps(folder), read_validation(folder), _read_constants(folder)
    for app in apps:
        if app not in constants or not (steps.app == app).any() or not (runs.app == app).any():
            raise InputError(
                str(folder), f"no measurements of {app!r}", "those of every application"
            )
    curves = {
        app: noise_curve(runs[runs.app == app], int(constants[app]["max_epochs"])) for app in apps
    }
    profiles = {
        app: _profile(app, steps[steps.app == app], curves[app], constants[app]) for app in apps
    }
    return Instance(
        name=f"pollux-{seed}",
        cluster=make_cluster(T4_NODE, nodes),
        profiles=profiles,
        curves=curves,
        jobs=tuple(_job(row, profiles, curves) for row in rows(chosen)),
        costs=Costs(start_s=30.0, restart_s=30.0),
        cadence=Cadence(period_s=60.0, on_event=True),
        source="Pollux's OSDI'21 artifact, github.com/petuum/adaptdl, branch osdi21-artifact",
        licence=LICENCE,
        citation=CITATION,
    )


def _read_workload(folder: Path, workload: str, seed: int) -> pd.DataFrame:
    """Return the rows of one workload in order of submission."""
    path = folder / "workloads.csv.gz"
    frame = read_numbers(path, "set name application", "seed time num_replicas batch_size")
    chosen = frame[(frame.set == workload) & (frame.seed == seed)]
    if chosen.empty:
        known = sorted({f"{row.set}/{row.seed:g}" for row in rows(frame)})
        found = f"workload {workload!r} with seed {seed}"
        raise InputError(str(path), found, f"one of {', '.join(known)}")
    return chosen.sort_values("time", kind="stable")


def _read_constants(folder: Path) -> dict[str, dict[str, float]]:
    path = folder / "app_constants.json"
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(str(path), str(error), "a JSON object by application") from error
    return {app: values for app, values in read.items() if isinstance(values, dict)}


def _profile(
    app: str, steps: pd.DataFrame, curve: NoiseCurve, constants: dict[str, float]
) -> Profile:
    most = float(constants.get("max_local_bsz", steps.local_bsz.max()))
    return Profile(
        name=app,
        throughput={T4_NODE.gpu.name: tabular(steps[steps.local_bsz <= most])},
        power=busy_power(T4_NODE),
        base_batch=curve.batches[0],
        batches=() if app == _NCF else curve.batches,
        min_local_batch=float(steps.local_bsz.min()),
        max_local_batch=_NCF_LOCAL_BATCH if app == _NCF else most,
        source="measured on AWS g4dn.12xlarge (Pollux, OSDI 2021)",
    )


def _job(row: Any, profiles: dict[str, Profile], curves: dict[str, NoiseCurve]) -> Job:
    """Return the job of a workload's row."""
    app, gpus = row.application, int(row.num_replicas)
    profile, curve = profiles[app], curves[app]
    most = min(64, int(curve.batches[-1] // profile.min_local_batch))
    return Job(
        id=row.name,
        submit_s=row.time,
        profile=app,
        gpus=gpus,
        min_gpus=1,
        max_gpus=1 if app == _NCF else max(most, gpus),
        batch=row.batch_size,
        estimate=Estimate(work=curve.until[-1]),
        truth=Truth(work=curve.until[-1], curve=app),
    )


def read_numbers(path: Path, names: str, numbers: str) -> pd.DataFrame:
    """Read text columns and number columns (names separated by blanks) of a CSV file."""
    columns = [*names.split(), *numbers.split()]
    frame = read_columns(path, {name: (name,) for name in columns})
    for column in numbers.split():
        frame[column] = to_number(path, frame, column)
        refuse(path, frame, (frame[column] < 0).to_numpy(), column, "0 or more")
    return frame


def read_steps(folder: Path) -> pd.DataFrame:
    """Return all measured steps, with app, gpus, nodes, local_bsz, step_time and sync_time (s).

    Placements with the same number of GPUs and nodes (such as 13 and 22) are averaged. If a shape
    is in both files, both measurements count.
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
    """Return an application's steps as a `Tabular` model.

    Times between two measured numbers of nodes with the same number of GPUs are interpolated
    linearly at each common local batch, as in Pollux's own simulator. A job that is scattered over
    an unmeasured number of nodes therefore has a speed too.
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
    """Return numbers rounded to six significant digits, well below the error of any measurement."""
    return tuple(float(f"{value:.6g}") for value in np.asarray(values, float))


def batch_grid(batches: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, ...]:
    """Return whole batch sizes from the smallest to the largest, about three per doubling.

    They include all validated sizes, each of which is twice the previous one.
    """
    low, high = float(batches.min()), float(batches.max())
    step = 2.0 ** (1 / 3)
    count = round(np.log(high / low) / np.log(step))
    return tuple(float(round(low * step**k)) for k in range(count + 1))


def read_validation(folder: Path) -> pd.DataFrame:
    """Return the runs for statistical efficiency: app, global_bsz, epoch, progress and grad_*."""
    numbers = "global_bsz epoch progress grad_sqr grad_var"
    return read_numbers(folder / "statistical_efficiency.csv.gz", "app", numbers)


def noise_curve(runs: pd.DataFrame, epochs: int) -> NoiseCurve:
    """Return the gradient noise scale of an application over its progress.

    If B0 is the smallest validated batch, the scale of epoch e at batch B is B0 grad_var /
    grad_sqr. Both are interpolated linearly in B between validated batch sizes. An epoch ends when
    the statistical progress (steps at B0) reaches the least progress of any run at the end of that
    epoch. The work at that point is this progress x B0 samples. Runs with fewer epochs are refused.
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
        # The scale is infinite where the squared gradient is 0; 1e9 also makes the efficiency 1.
        scale.append(shorten(np.minimum(measured[0] * ratio, 1e9)))
    until = measured[0] * progress.iloc[:epochs].min(axis=1).to_numpy()
    return NoiseCurve(until=tuple(until.tolist()), batches=grid, scale=tuple(scale))
