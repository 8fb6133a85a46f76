"""The configurations of one application in one pool: computed once, chosen from for every job."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.dominance import fastest_per_gpus, undominated
from ronda.formulations.efficiency import efficiency, scale_at, worth
from ronda.formulations.pool_shape import PoolShape
from ronda.formulations.power import mixed_power_w
from ronda.formulations.remembered import remembered
from ronda.formulations.throughput import fastest_step, model_of, samples_per_s
from ronda.instances.job import Option
from ronda.instances.profile import NoiseScale, Parametric, Profile, Rigid

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

SPANS = ("node", "rack", "cluster")
NODE, RACK, CLUSTER = range(len(SPANS))

# Rows of a block: pool, gpus, span, width, clock, batch, rate, power_w. One float array for all
# columns makes joining cheap.
COLUMNS, RATE = 8, 6

# Entries that a menu keeps of each kind; a block is about 1 KiB.
MOST_REMEMBERED = 8192


class Request(NamedTuple):
    """What a job may choose from in a pool; jobs with equal requests share one block of rows.

    Attributes
    ----------
    clocks, batches
        Clock fractions (ascending) and global batch sizes.
    low, high, asked
        GPUs: the ladder's counts within [low, high], and `asked`.
    noise
        Gradient noise scale; None: every sample counts fully.
    prune
        Whether to drop dominated rows.
    mind_power
        Whether watts matter in that.
    """

    clocks: tuple[float, ...]
    batches: tuple[float, ...]
    low: int
    high: int
    asked: int
    noise: NoiseScale | None
    prune: bool
    mind_power: bool


@dataclass(frozen=True, slots=True)
class Grid:
    """All configurations for some clocks (S,) and batches (B,): parallel to `counts` (N,).

    `span` (N,) is the index into `SPANS`; counts ascend, and spans of the same count do.
    `speed` is samples per second (0: not feasible) and `power_w` the job's watts, both (N, S, B).
    """

    counts: Rows
    span: Rows
    speed: Floats
    power_w: Floats


class Menu:
    """Rows of options of one profile in one pool, remembered by request.

    Parameters
    ----------
    profile
        The application; it must have a throughput model of the pool's GPU type.
    shape
        The pool.
    """

    def __init__(self, profile: Profile, shape: PoolShape) -> None:
        self.profile, self.shape = profile, shape
        model = model_of(profile, shape.pool.gpu_type)
        self.rigid = isinstance(model, Rigid)
        several = shape.pool.racks > 1
        self.minds_racks = several and isinstance(model, Parametric) and model.minds_racks
        self._grids: dict[tuple[object, ...], Grid] = {}
        self._blocks: dict[Request, Floats] = {}
        self._speeds: dict[tuple[int, int, float, float, int], float] = {}
        self._worth: dict[tuple[NoiseScale, float], float] = {}

    def trim(self) -> None:
        """Forget everything once it is a lot; between two tables, never while one is built."""
        for known in (self._blocks, self._speeds, self._worth, self._grids):
            if len(known) > MOST_REMEMBERED:
                known.clear()

    def knows(self, request: Request) -> bool:
        """Tell whether the block of a request is remembered."""
        return request in self._blocks

    def block(self, request: Request) -> Floats:
        """Return the block of a request that was prepared: (COLUMNS, K) floats, not to be changed.

        Rows are ordered by GPUs, then span, then clock.
        """
        return self._blocks[request]

    def prepare(self, requests: Sequence[Request]) -> None:
        """Compute the blocks of requests together; all share clocks, batches and flags."""
        first = requests[0]
        grid = self._grid(first.clocks, first.batches, {r.asked for r in requests})
        rate, batch, power = _best_batch(grid, self._efficiencies(requests), first.batches)
        offered = (rate > 0) & self._offered(grid.counts, requests)[:, :, None]
        if first.prune:
            offered = _pruned(grid, offered, rate, power, first.mind_power)
        clocks = np.asarray(first.clocks)
        for request, keep, r, b, p in zip(requests, offered, rate, batch, power, strict=True):
            n, s = np.nonzero(keep)
            block = np.empty((COLUMNS, len(n)))
            block[0], block[1], block[3] = self.shape.index, grid.counts[n], 1.0
            block[2] = grid.span[n]
            block[4], block[5], block[6], block[7] = clocks[s], b[keep], r[keep], p[keep]
            self._blocks[request] = block

    def rate(self, option: Option, reach: tuple[int, int], noise: NoiseScale | None) -> float:
        """Return the rate of an option on so many nodes in so many racks; 0.0 if not feasible."""
        nodes, racks = reach
        key = (option.gpus, nodes, option.batch, option.clock, racks if self.minds_racks else 1)
        if key not in self._speeds:
            name = self.shape.pool.gpu_type
            self._speeds[key] = float(samples_per_s(self.profile, name, *key))
        if noise is None or self.rigid:
            return self._speeds[key]
        at = (noise, option.batch)
        if at not in self._worth:
            self._worth[at] = worth(noise, option.batch, self.profile.base_batch)
        return self._speeds[key] * self._worth[at]

    def _offered(self, counts: Rows, requests: Sequence[Request]) -> Mask:
        """Return (J, N) whether a job may take a count."""
        low, high, asked = (
            np.array([getattr(r, name) for r in requests])[:, None]
            for name in ("low", "high", "asked")
        )
        ladder = np.isin(counts, self.shape.ladder)
        return np.asarray((ladder & (counts >= low) & (counts <= high)) | (counts == asked))

    def _efficiencies(self, requests: Sequence[Request]) -> Floats:
        """Return (J, B) what a sample is worth."""
        batches = np.asarray(requests[0].batches)
        base, one = self.profile.base_batch, np.ones(len(batches))
        noises = (r.noise for r in requests)
        return np.stack(
            [one if x is None else efficiency(scale_at(x, batches), batches, base) for x in noises]
        )

    def _grid(self, clocks: tuple[float, ...], batches: tuple[float, ...], asked: set[int]) -> Grid:
        """Return the grid with the ladder's counts and those asked for; it grows as needed."""
        old = self._grids.get((clocks, batches))
        known = set() if old is None else set(old.counts.tolist())
        pool = self.shape.pool
        wanted = {n for n in {*self.shape.ladder, *asked} if n <= pool.gpus} - known
        if old is not None and not wanted:
            return old
        ways = [(n, span) for n in sorted(wanted) for span in self._spans(n)]
        counts, span = np.array(ways, dtype=np.int64).reshape(-1, 2).T
        new = self._measure(counts, span, clocks, batches)
        if old is not None:
            new = _merged(old, new)
        self._grids[clocks, batches] = new
        return new

    def _spans(self, gpus: int) -> tuple[int, ...]:
        """Return how far so many GPUs may reach: a rack is an offer only if it is faster."""
        if gpus <= self.shape.pool.gpus_per_node:
            return (NODE,)
        return (RACK, CLUSTER) if self.minds_racks and gpus <= self.shape.rack_gpus else (CLUSTER,)

    def _measure(
        self, counts: Rows, span: Rows, clocks: tuple[float, ...], batches: tuple[float, ...]
    ) -> Grid:
        """Compute speed and power of every configuration."""
        gpu_type = self.shape.pool.gpu_type
        shape = (len(counts), len(clocks), len(batches))
        n = counts[:, None, None]
        s, b = np.asarray(clocks)[None, :, None], np.asarray(batches)[None, None, :]
        if self.rigid:
            speed, share = np.ones(shape), np.zeros(shape)
        else:
            racks = np.where(span == CLUSTER, self.shape.pool.racks, 1)[:, None, None]
            step = fastest_step(self.profile, gpu_type, n, self.shape.nodes(n), b, s, racks)
            speed = np.nan_to_num(b / step.seconds, nan=0.0)
            share = np.nan_to_num(step.sync_share, nan=0.0)
        curve = self.profile.power.get(gpu_type.name)
        power = n * mixed_power_w(curve, gpu_type.idle_w, s, share)
        return Grid(counts, span, speed, np.asarray(np.broadcast_to(power, shape)))


def menu(profile: Profile, shape: PoolShape) -> Menu:
    """Return the menu of a profile in a pool, kept with the profile."""
    key = ("menu", shape)
    return remembered(profile, key, lambda: Menu(profile, shape))


def _merged(old: Grid, new: Grid) -> Grid:
    counts = np.concatenate([old.counts, new.counts])
    span = np.concatenate([old.span, new.span])
    order = np.lexsort((span, counts))
    return Grid(
        counts[order],
        span[order],
        np.concatenate([old.speed, new.speed])[order],
        np.concatenate([old.power_w, new.power_w])[order],
    )


def _pruned(grid: Grid, offered: Mask, rate: Floats, power_w: Floats, mind_power: bool) -> Mask:
    """Return (J, N, S) the options that are not dominated.

    Being in one rack is a restriction: a row of span rack dominates only rows of that span.
    """

    def among(some: Mask) -> Mask:
        if mind_power:
            return undominated(offered[:, some], rate[:, some], power_w[:, some], grid.counts[some])
        return fastest_per_gpus(offered[:, some], rate[:, some])

    racks = grid.span == RACK
    if not racks.any():
        return among(~racks)
    kept = np.zeros_like(offered)
    kept[:, ~racks] = among(~racks)
    narrow = grid.span != CLUSTER
    kept[:, racks] = among(narrow)[:, racks[narrow]]
    return kept


def _best_batch(
    grid: Grid, worth: Floats, batches: tuple[float, ...]
) -> tuple[Floats, Floats, Floats]:
    """Return rate, batch and power (J, N, S) at the batch with the best rate.

    A batch uses no shared resource, so the fastest is best; with `sync_w` a slower batch may draw
    less, which is neglected. One batch at a time keeps memory at (J, N, S).
    """
    shape = (len(worth), *grid.speed.shape[:2])
    rate, best = np.full(shape, -1.0), np.zeros(shape, dtype=np.int64)
    for b in range(len(batches)):
        trial = worth[:, b, None, None] * grid.speed[:, :, b]
        better = trial > rate
        rate = np.where(better, trial, rate)
        best[better] = b
    power = np.take_along_axis(
        np.broadcast_to(grid.power_w, (len(worth), *grid.power_w.shape)), best[..., None], axis=3
    )[..., 0]
    return rate, np.asarray(batches)[best], power
