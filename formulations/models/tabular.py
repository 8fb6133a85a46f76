"""Measured step times: look-up in a table by GPUs, nodes and local batch.

Between two measured local batches of the same (GPUs, nodes) both times are linear; nothing is
extrapolated, and (GPUs, nodes) that were not measured are not feasible.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ronda.formulations.per_record import per_record
from ronda.instances.arrays import Floats, Rows
from ronda.instances.profile import Tabular

Cell = tuple[Floats, Floats, Floats]

# L / m may miss a measured local batch by rounding.
ROUNDING = 1e-9


@per_record(maxsize=1024)
def cells(model: Tabular) -> dict[tuple[int, int], Cell]:
    """Return ascending local batches, computing and synchronising seconds by (GPUs, nodes)."""
    columns = (model.gpus, model.nodes, model.local_batch, model.step_s, model.sync_s)
    gpus, nodes, batch, step, sync = (np.array(x) for x in columns)
    order = np.lexsort((batch, nodes, gpus))
    gpus, nodes, batch, sync = gpus[order], nodes[order], batch[order], sync[order]
    compute = step[order] - sync
    new = (gpus[1:] != gpus[:-1]) | (nodes[1:] != nodes[:-1])
    first = [0, *(np.flatnonzero(new) + 1).tolist()]
    keys = zip(gpus[first].tolist(), nodes[first].tolist(), strict=True)
    return {
        key: (batch[a:b], compute[a:b], sync[a:b])
        for key, a, b in zip(keys, first, [*first[1:], len(batch)], strict=True)
    }


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
    passes, used = np.zeros(batch.shape), list[Cell]()
    which = np.full(batch.shape, -1)
    for key, where in _by_cell(gpus, nodes):
        cell = cells(model).get(key)
        if cell is not None:
            which[where] = len(used)
            used.append(cell)
    at = which >= 0
    if used:
        load = batch[at] / gpus[at].astype(float)
        passes[at] = _fastest(used, which[at], load, slowdown[at], least, most)
    return passes


class _Pieces(NamedTuple):
    """The pieces between measured local batches of some cells, (C, P) each.

    Cells with fewer pieces have some without a length at their largest batch. On a piece computing
    is ``fixed`` + q b, and synchronising rises by ``slope``.
    """

    low: Floats
    high: Floats
    slope: Floats
    fixed: Floats


def _pieces(used: Sequence[Cell]) -> _Pieces:
    """Return the pieces of cells; a cell of one local batch has one piece without a length."""
    counts = np.array([len(known) for known, _, _ in used])
    most = max(int(counts.max()), 2)
    place = np.minimum(np.arange(most), counts[:, None] - 1)
    place += (counts.cumsum() - counts)[:, None]
    known, computing, synchronising = (
        np.concatenate(column)[place] for column in zip(*used, strict=True)
    )
    low, high = known[:, :-1], known[:, 1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.where(high > low, high - low, np.inf)
        slope, grad = (np.diff(column) / width for column in (synchronising, computing))
    return _Pieces(low, high, slope, computing[:, :-1] - grad * low)


def _fastest(
    used: Sequence[Cell], which: Rows, per_gpu: Floats, slowdown: Floats, least: float, most: float
) -> Floats:
    """`fastest_passes` in the cells `which` (X,) of those used; `per_gpu` (X,) is L."""
    pieces = _pieces(used)
    low, high = np.maximum(pieces.low, least)[which], np.minimum(pieces.high, most)[which]
    load, slow = per_gpu[:, None], slowdown[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        fewest = np.maximum(np.ceil(load / high * (1 - ROUNDING)), 1.0)
        largest = np.floor(load / low * (1 + ROUNDING))
        turn = np.sqrt(pieces.slope[which] * load / (slow * pieces.fixed[which]))
    turn = np.where(np.isfinite(turn), turn, 1.0)
    choice = np.stack([fewest, largest, np.floor(turn), np.ceil(turn)], axis=-1)
    choice = np.clip(choice, fewest[..., None], np.maximum(fewest, largest)[..., None])
    good = (high >= low) & (largest >= fewest) & np.isfinite(fewest)
    choice = np.where(good[..., None], choice, 1.0)
    seconds = np.full(choice.shape, np.inf)
    for c, (known, computing, synchronising) in enumerate(used):
        own = which == c
        b = _snap(load[own][..., None] / choice[own], known)
        each = choice[own] * slow[own][..., None] * np.interp(b, known, computing)
        seconds[own] = each + np.interp(b, known, synchronising)
    flat = np.where(good[..., None], seconds, np.inf).reshape(len(per_gpu), -1)
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
    pair = np.empty(gpus.shape, dtype=complex)
    pair.real, pair.imag = gpus, nodes
    return [((int(n.real), int(n.imag)), np.asarray(pair == n)) for n in np.unique(pair)]
