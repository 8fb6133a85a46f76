"""The look-up of measured step times by GPUs, nodes and local batch.

Both times are linear between two measured local batches of the same (GPUs, nodes). Nothing is
extrapolated, and unmeasured (GPUs, nodes) are infeasible. Tables of many models are stacked, so
that one pass over arrays looks up all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.instances.base import Floats, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.models.cache import per_record
from ronda.instances.profile import Tabular
from ronda.instances.violation import ROUNDING

WIDE = 1 << 20
"""A number above all numbers of GPUs and nodes in tables."""


class Tables(NamedTuple):
    """The tables of some models, with a cell for each model and (GPUs, nodes), ascending by `key`.

    Each of the C cells owns the rows ``first`` to ``first + more`` of `known`, `compute` and `sync`
    (R,): its local batches, ascending, and their seconds.
    """

    key: Rows
    first: Rows
    more: Rows
    known: Floats
    compute: Floats
    sync: Floats


def stacked(models: Sequence[Tabular]) -> Tables:
    """Return the tables of models, numbered in the given order."""
    names = ("gpus", "nodes", "local_batch", "step_s", "sync_s")
    columns = np.array([np.concatenate([getattr(m, name) for m in models]) for name in names])
    which = np.repeat(np.arange(len(models)), [len(m.gpus) for m in models])
    key = _key(which, columns[0], columns[1])
    order = np.lexsort((columns[2], key))
    key, (_, _, batch, step, sync) = key[order], columns[:, order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    more = np.diff(np.append(first, len(key))) - 1
    return Tables(key[first], first, more, batch, step - sync, sync)


@per_record(maxsize=1024)
def table_of_model(model: Tabular) -> Tables:
    """Return the table of one model."""
    return stacked([model])


def _key(model: Rows, gpus: NDArray[np.generic], nodes: NDArray[np.generic]) -> Rows:
    n, spread = (np.minimum(x, WIDE - 1).astype(np.int64) for x in (gpus, nodes))
    return np.asarray((model * WIDE + n) * WIDE + spread)


def cells(
    tables: Tables, model: Rows, gpus: NDArray[np.generic], nodes: NDArray[np.generic]
) -> Rows:
    """Return the index of the cell of each configuration, -1 where there is none."""
    key = _key(model, gpus, nodes)
    at = np.minimum(np.searchsorted(tables.key, key), len(tables.key) - 1)
    return np.where(tables.key[at] == key, at, -1)


def measured_phases(tables: Tables, cell: Rows, local_batch: Floats) -> tuple[Floats, Floats]:
    """Return the seconds of computing in one pass and of synchronisation, at full clock.

    Both have the shape of the cells and local batches, and are NaN outside of the measurements.
    """
    first, last = tables.first[cell], tables.first[cell] + tables.more[cell]
    least, most = tables.known[first], tables.known[last]
    near = np.clip(local_batch, least, most)
    batch = np.where(np.abs(near - local_batch) <= ROUNDING * 4 * near, near, local_batch)
    at = _at_most(tables.known, first, last, batch)
    after = np.minimum(at + 1, last)
    width = np.where(after > at, tables.known[after] - tables.known[at], np.inf)
    inside = (cell >= 0) & (batch >= least) & (batch <= most)
    times = []
    for seconds in (tables.compute, tables.sync):
        rise = (seconds[after] - seconds[at]) / width
        risen = rise * (batch - tables.known[at]) + seconds[at]
        times.append(np.where(inside, risen, np.nan))
    return times[0], times[1]


def _at_most(known: Floats, first: Rows, last: Rows, batch: Floats) -> Rows:
    """Return the last of the rows `first` to `last` whose batch is at most `batch`, or `first`."""
    low, high = first, last
    for _ in range(int((last - first).max(initial=0)).bit_length()):
        middle = (low + high + 1) // 2
        right = known[middle] <= batch
        low, high = np.where(right, middle, low), np.where(right, high, middle - 1)
    return low


def fastest_passes(
    tables: Tables, cell: Rows, load: Floats, slowdown: Floats, least: Floats, most: Floats
) -> Floats:
    """Return the number of gradient passes m of the shortest iteration, or 0 if none is feasible.

    Let L be the `load` in samples per GPU, b = L / m the local batch, and f the clock's slowdown.
    On a piece of the table where computing takes ``p + q b`` and synchronising ``r + t b``, an
    iteration takes ``f p m + f q L + r + t L / m``. If p and t are positive, the best integer m is
    next to ``sqrt(t L / (f p))``. Otherwise, or if that is outside the piece, the best m is at an
    end of the piece.

    All arrays have shape (X,). `least` and `most` limit the local batch in addition to the
    measurements.
    """
    passes = np.zeros(len(cell))
    there = np.flatnonzero(cell >= 0)
    # Arrays of 4096 batches stay in the cache.
    some = max(1, 4096 // (1 + int(tables.more[cell[there]].max(initial=0))))
    for begin in range(0, len(there), some):
        checkpoint()
        x = there[begin : begin + some]
        passes[x] = _fastest(tables, cell[x], load[x], slowdown[x], least[x], most[x])
    return passes


def _fastest(
    tables: Tables, cell: Rows, load: Floats, slowdown: Floats, least: Floats, most: Floats
) -> Floats:
    """Return `fastest_passes` for configurations with a cell, over all P pieces of each cell."""
    more = tables.more[cell]
    steps = np.arange(max(2, 1 + int(more.max())))  # a cell of one batch has a piece without length
    place = tables.first[cell][:, None] + np.minimum(steps, more[:, None])
    known, computing, syncing = (x[place] for x in (tables.known, tables.compute, tables.sync))
    width = np.where(np.diff(known) > 0, np.diff(known), np.inf)
    grad, slope, begin = np.diff(computing) / width, np.diff(syncing) / width, known[:, :-1]
    fixed = computing[:, :-1] - grad * begin
    low, high = np.maximum(begin, least[:, None]), np.minimum(known[:, 1:], most[:, None])
    load, slow = load[:, None], slowdown[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        fewest = np.maximum(np.ceil(load / high * (1 - ROUNDING)), 1.0)
        largest = np.floor(load / low * (1 + ROUNDING))
        turn = np.sqrt(slope * load / (slow * fixed))
    good = (high >= low) & (largest >= fewest) & np.isfinite(fewest)
    convex = (slope > 0) & (fixed > 0)  # otherwise an end is best
    seconds, passes = np.full(good.shape, np.inf), np.ones(good.shape)
    for m, end in ((np.floor(turn), fewest), (np.ceil(turn), largest)):
        choice = np.where(convex, np.clip(m, fewest, largest), end)
        choice = np.where(good, choice, 1.0)
        beyond = load / choice - begin
        compute, sync = computing[:, :-1] + grad * beyond, syncing[:, :-1] + slope * beyond
        takes = choice * slow * compute + sync
        better = good & (takes < seconds)
        seconds, passes = np.where(better, takes, seconds), np.where(better, choice, passes)
    best, rows = seconds.argmin(axis=1), np.arange(len(cell))
    return np.where(np.isfinite(seconds[rows, best]), passes[rows, best], 0.0)
