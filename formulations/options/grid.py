"""Every configuration of one application in one pool, measured by its throughput model."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.models.power import mixed_power_w
from ronda.formulations.models.throughput import fastest_step, model_of
from ronda.formulations.options.pools import PoolShape
from ronda.instances.arrays import Floats
from ronda.instances.profile import Parametric, Profile, Rigid

SPANS = ("node", "rack", "cluster")
NODE, RACK, CLUSTER = range(len(SPANS))

# Rows of a block: pool, gpus, span, width, clock, batch, rate, power_w. One float array for all
# columns makes joining cheap; those before FLOATS_FROM hold whole numbers.
COLUMNS, FLOATS_FROM = 8, 4
POOL, GPUS, SPAN, WIDTH, CLOCK, BATCH, RATE, WATTS = range(COLUMNS)


class Grid(NamedTuple):
    """All configurations of an application in a pool: rows, and what each does with each batch.

    Attributes
    ----------
    span
        (R,) index into `SPANS`. Rows are ordered by GPUs, then by span, then by clock.
    ladder
        (R,) whether a row is offered without being asked for.
    whole
        (FLOATS_FROM, R) the first columns of a block.
    ways
        (COLUMNS - FLOATS_FROM, R, B) clock, batch, samples per second (0: not feasible) and watts
        of every row with every batch.
    """

    span: list[int]
    ladder: NDArray[np.bool_]
    whole: Floats
    ways: Floats

    @property
    def speed(self) -> Floats:
        """(R, B) samples per second."""
        return np.asarray(self.ways[RATE - FLOATS_FROM])

    @property
    def power_w(self) -> Floats:
        """(R, B) watts."""
        return np.asarray(self.ways[WATTS - FLOATS_FROM])

    def offered(self, counts: Sequence[tuple[int, int, int]]) -> NDArray[np.bool_]:
        """Return (J, R) the ladder's rows within [low, high] GPUs, and those with `asked` GPUs."""
        gpus = self.whole[GPUS]
        low, high, asked = np.array(counts).T[:, :, None]
        return np.asarray((self.ladder & (gpus >= low) & (gpus <= high)) | (gpus == asked))


def minds_racks(profile: Profile, shape: PoolShape) -> bool:
    """Tell whether it matters to an application if its nodes in a pool are in one rack."""
    model = model_of(profile, shape.pool.gpu_type)
    return shape.pool.racks > 1 and isinstance(model, Parametric) and model.minds_racks


def measured_grid(
    profile: Profile,
    shape: PoolShape,
    clocks: tuple[float, ...],
    batches: tuple[float, ...],
    gpus: Iterable[int],
    *,
    every_clock: bool,
) -> Grid:
    """Return the grid of some GPU counts.

    Parameters
    ----------
    profile, shape
        The application, with a throughput model of the pool's GPU type, and the pool.
    clocks, batches
        Clock fractions (S,), ascending, and global batch sizes (B,).
    gpus
        The counts; the pool has so many.
    every_clock
        Whether every clock has a row; otherwise a GPU count has one row (of each span), and every
        batch is run at its fastest clock, of equally fast ones the lowest.
    """
    counts, span = _rows(profile, shape, gpus)
    speed, power = _measure(profile, shape, counts, span, clocks, batches)
    clock = np.broadcast_to(np.asarray(clocks)[:, None], speed.shape)
    if not every_clock:
        best = speed.argmax(axis=1, keepdims=True)
        clock, speed, power = (np.take_along_axis(x, best, axis=1) for x in (clock, speed, power))
    each = speed.shape[1]
    whole = np.ones((FLOATS_FROM, len(counts) * each))
    whole[POOL], whole[GPUS], whole[SPAN] = shape.index, counts.repeat(each), span.repeat(each)
    ways = np.array(np.broadcast_arrays(clock, batches, speed, power))
    on_ladder = np.isin(whole[GPUS], shape.ladder)
    return Grid(
        span.repeat(each).tolist(), on_ladder, whole, ways.reshape(len(ways), -1, len(batches))
    )


def merged(one: Grid, other: Grid) -> Grid:
    """Return the rows of two grids with different GPU counts, in order."""
    whole = np.concatenate([one.whole, other.whole], axis=1)
    order = np.lexsort((whole[SPAN], whole[GPUS]))  # keeps the order of clocks
    return Grid(
        span=whole[SPAN][order].astype(int).tolist(),
        ladder=np.concatenate([one.ladder, other.ladder])[order],
        whole=whole[:, order],
        ways=np.concatenate([one.ways, other.ways], axis=1)[:, order],
    )


def _rows(
    profile: Profile, shape: PoolShape, gpus: Iterable[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return GPU counts and how far these may reach: a rack is an offer only if it is faster."""
    whole, racks = shape.pool.gpus_per_node, minds_racks(profile, shape)
    rows: list[tuple[int, int]] = []
    for n in sorted(gpus):
        if n <= whole:
            rows.append((n, NODE))
            continue
        if racks and n <= shape.rack_gpus:
            rows.append((n, RACK))
        rows.append((n, CLUSTER))
    counts, span = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return counts, span


def _measure(
    profile: Profile,
    shape: PoolShape,
    counts: NDArray[np.int64],
    span: NDArray[np.int64],
    clocks: tuple[float, ...],
    batches: tuple[float, ...],
) -> tuple[Floats, Floats]:
    """Return (N, S, B) samples per second and watts of every configuration."""
    gpu_type = shape.pool.gpu_type
    n = counts[:, None, None]
    s, b = np.asarray(clocks)[None, :, None], np.asarray(batches)[None, None, :]
    size = (len(counts), len(clocks), len(batches))
    if isinstance(model_of(profile, gpu_type), Rigid):
        speed, share = np.ones(size), np.zeros(size)
    else:
        racks = np.where(span == CLUSTER, shape.pool.racks, 1)[:, None, None]
        step = fastest_step(profile, gpu_type, n, shape.nodes(n), b, s, racks)
        speed = np.nan_to_num(b / step.seconds, nan=0.0)
        share = np.nan_to_num(step.sync_share, nan=0.0)
    power = n * mixed_power_w(profile.power.get(gpu_type.name), gpu_type.idle_w, s, share)
    return np.broadcast_to(speed, size), np.broadcast_to(power, size)
