"""Measured step times: look-up in a table by GPUs, nodes and local batch.

Between two measured local batches of the same (GPUs, nodes) both times are linear; nothing is
extrapolated, and (GPUs, nodes) that were not measured are not feasible.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ronda.formulations.per_record import per_record
from ronda.instances.arrays import Floats
from ronda.instances.profile import Tabular

Cell = tuple[Floats, Floats, Floats]

# L / m may miss a measured local batch by rounding.
ROUNDING = 1e-9


@per_record(maxsize=1024)
def cells(model: Tabular) -> dict[tuple[int, int], Cell]:
    """Return ascending local batches, computing and synchronising seconds by (GPUs, nodes)."""
    batch, step, sync = (np.asarray(x) for x in (model.local_batch, model.step_s, model.sync_s))
    keys = list(zip(model.gpus, model.nodes, strict=True))
    found: dict[tuple[int, int], Cell] = {}
    for key in dict.fromkeys(keys):
        rows = np.flatnonzero([k == key for k in keys])
        rows = rows[np.argsort(batch[rows], kind="stable")]
        found[key] = (batch[rows], step[rows] - sync[rows], sync[rows])
    return found


def measured_phases(
    model: Tabular, gpus: ArrayLike, nodes: ArrayLike, local_batch: ArrayLike
) -> tuple[Floats, Floats]:
    """Return seconds of one pass's computing and of synchronisation at full clock.

    Broadcasts; NaN outside what was measured.
    """
    n, spread, batch = np.broadcast_arrays(
        np.asarray(gpus), np.asarray(nodes), np.asarray(local_batch, dtype=float)
    )
    compute, sync = np.full(n.shape, np.nan), np.full(n.shape, np.nan)
    for key, where in _by_cell(n, spread):
        cell = cells(model).get(key)
        if cell is not None:
            known, computing, synchronising = cell
            b = _snap(batch[where], known)
            compute[where] = np.interp(b, known, computing, left=np.nan, right=np.nan)
            sync[where] = np.interp(b, known, synchronising, left=np.nan, right=np.nan)
    return compute, sync


def fastest_passes(
    model: Tabular,
    gpus: NDArray[np.generic],
    nodes: NDArray[np.generic],
    batch: Floats,
    slowdown: Floats,
    least: float,
    most: float,
) -> Floats:
    """Return the number of gradient passes m that makes an iteration shortest; 0: none is feasible.

    With L = B / n and b = L / m, on a piece where computing is ``p + q b`` and synchronising
    ``r + t b``, an iteration takes ``f p m + f q L + r + t L / m`` (f the clock's slowdown). Its
    least integer m is at an end of the piece or beside ``sqrt(t L / (f p))``; these are compared.

    Arrays are of one shape; `least` and `most` limit the local batch beside the measurements.
    """
    passes = np.zeros(batch.shape)
    for key, where in _by_cell(gpus, nodes):
        cell = cells(model).get(key)
        if cell is not None:
            passes[where] = _fastest(cell, batch[where] / key[0], slowdown[where], least, most)
    return passes


def _fastest(cell: Cell, per_gpu: Floats, slowdown: Floats, least: float, most: float) -> Floats:
    """`fastest_passes` in one cell: `per_gpu` is L, all arrays are (X,)."""
    known, computing, synchronising = cell
    low, high = np.maximum(known, least), np.minimum(known, most)
    low, high = (low[:-1], high[1:]) if len(known) > 1 else (low, high)
    load, slow = per_gpu[:, None], slowdown[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        fewest = np.maximum(np.ceil(load / high * (1 - ROUNDING)), 1.0)
        largest = np.floor(load / low * (1 + ROUNDING))
        slope = np.diff(synchronising) / np.diff(known) if len(known) > 1 else np.zeros(1)
        grad = np.diff(computing) / np.diff(known) if len(known) > 1 else np.zeros(1)
        fixed = computing[: len(grad)] - grad * known[: len(grad)]
        turn = np.nan_to_num(np.sqrt(slope * load / (slow * fixed)), nan=1.0, posinf=1.0)
    choice = np.stack([fewest, largest, np.floor(turn), np.ceil(turn)], axis=-1)
    choice = np.clip(choice, fewest[..., None], np.maximum(fewest, largest)[..., None])
    good = ((high >= low) & (largest >= fewest) & np.isfinite(fewest))[..., None]
    choice = np.where(good, choice, 1.0)
    b = _snap(load[..., None] / choice, known)
    seconds = choice * slow[..., None] * np.interp(b, known, computing)
    seconds = np.where(good, seconds + np.interp(b, known, synchronising), np.inf)
    flat = seconds.reshape(len(per_gpu), -1)
    best = flat.argmin(axis=1)
    rows = np.arange(len(per_gpu))
    chosen = choice.reshape(len(per_gpu), -1)[rows, best]
    return np.asarray(np.where(np.isfinite(flat[rows, best]), chosen, 0.0))


def _snap(batch: Floats, known: Floats) -> Floats:
    """Move batches that miss the measured range by rounding back into it."""
    near = np.clip(batch, known[0], known[-1])
    return np.asarray(np.where(np.abs(near - batch) <= ROUNDING * 4 * near, near, batch))


def _by_cell(
    gpus: NDArray[np.generic], nodes: NDArray[np.generic]
) -> list[tuple[tuple[int, int], NDArray[np.bool_]]]:
    """Return each distinct (GPUs, nodes) with the mask of where it occurs."""
    pairs = np.stack([gpus.ravel(), nodes.ravel()], axis=1)
    distinct = np.unique(pairs, axis=0)
    return [
        ((int(n), int(spread)), np.asarray((gpus == n) & (nodes == spread)))
        for n, spread in distinct
    ]
