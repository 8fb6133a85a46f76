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
# columns makes joining cheap; those before FLOATS_FROM hold whole numbers.
COLUMNS, FLOATS_FROM, RATE = 8, 4, 6

# Entries that a menu keeps of each kind; a block is about 1 KiB.
MOST_REMEMBERED = 8192

# Blocks computed at once: bounds memory at a few MiB per temporary array, which caches like.
AT_ONCE = 128


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

    `span` (N,) is the index into `SPANS`; counts ascend, and spans of the same count do. `ladder`
    (N,) tells which are offered without being asked for. `speed` is samples per second (0: not
    feasible) and `power_w` the job's watts, both (N, S, B).
    """

    counts: Rows
    span: Rows
    ladder: Mask
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
        self._limits: dict[Request, dict[tuple[int, int, int], None]] = {}
        self._speeds: dict[tuple[int, int, float, float, int], float] = {}
        self._worth: dict[tuple[NoiseScale, float], float] = {}

    def trim(self) -> None:
        """Forget everything once it is a lot; between two tables, never while one is built."""
        for known in (self._blocks, self._limits, self._speeds, self._worth, self._grids):
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
        requests = self._with_siblings(requests)
        first = requests[0]
        grid = self._grid(first.clocks, first.batches, {r.asked for r in requests})
        for at in range(0, len(requests), AT_ONCE):
            self._choose(grid, requests[at : at + AT_ONCE])

    def _with_siblings(self, requests: Sequence[Request]) -> Sequence[Request]:
        """Return requests, and those that jobs like earlier ones will make at the same noise.

        Jobs of an application reach the same noise at different times: one computation serves all
        limits that its jobs have, if these are few.
        """
        first = requests[0]
        limits = self._limits.setdefault(first._replace(low=0, high=0, asked=0, noise=None), {})
        if len(limits) <= AT_ONCE:
            limits.update(dict.fromkeys((r.low, r.high, r.asked) for r in requests))
        noises = dict.fromkeys(r.noise for r in requests)
        if len(noises) * len(limits) > AT_ONCE:
            return requests
        every = (
            first._replace(low=low, high=high, asked=asked, noise=noise)
            for noise in noises
            for low, high, asked in limits
        )
        return [request for request in every if request not in self._blocks]

    def _choose(self, grid: Grid, requests: Sequence[Request]) -> None:
        """Compute the blocks of requests from the grid that covers them."""
        first = requests[0]
        rate, batch = _best_batch(grid, self._efficiencies(requests))
        offered = (rate > 0) & _offered(grid, requests)[:, :, None]
        if first.prune:
            offered = _pruned(grid, offered, rate, batch, first.mind_power)
        j, n, s = np.nonzero(offered)
        b = batch[offered]
        whole = np.empty((COLUMNS, len(j)))
        whole[0], whole[1], whole[2], whole[3] = self.shape.index, grid.counts[n], grid.span[n], 1.0
        whole[4], whole[5] = np.array(first.clocks)[s], np.array(first.batches)[b]
        whole[6], whole[7] = rate[offered], grid.power_w[n, s, b]
        ends = np.bincount(j, minlength=len(requests)).cumsum().tolist()
        for request, begin, end in zip(requests, [0, *ends], ends, strict=False):
            self._blocks[request] = np.ascontiguousarray(whole[:, begin:end])

    def rate(self, option: Option, reach: tuple[int, int], noise: NoiseScale | None) -> float:
        """Return the rate of an option on so many nodes in so many racks; 0.0 if not feasible."""
        nodes, racks = reach
        key = (option.gpus, nodes, option.batch, option.clock, racks if self.minds_racks else 1)
        speed = self._speeds.get(key)
        if speed is None:
            gpu_type = self.shape.pool.gpu_type
            speed = self._speeds[key] = float(samples_per_s(self.profile, gpu_type, *key))
        if noise is None or self.rigid:
            return speed
        of_sample = self._worth.get((noise, option.batch))
        if of_sample is None:
            of_sample = worth(noise, option.batch, self.profile.base_batch)
            self._worth[noise, option.batch] = of_sample
        return speed * of_sample

    def _efficiencies(self, requests: Sequence[Request]) -> Floats:
        """Return (J, B) what a sample is worth."""
        batches, base = requests[0].batches, self.profile.base_batch
        sizes, one = np.array(batches), np.ones(len(batches))
        noises = (r.noise for r in requests)
        return np.array(
            [one if x is None else efficiency(scale_at(x, batches), sizes, base) for x in noises]
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
        ladder = np.isin(counts, self.shape.ladder)
        return Grid(counts, span, ladder, speed, np.asarray(np.broadcast_to(power, shape)))


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
        np.concatenate([old.ladder, new.ladder])[order],
        np.concatenate([old.speed, new.speed])[order],
        np.concatenate([old.power_w, new.power_w])[order],
    )


def _offered(grid: Grid, requests: Sequence[Request]) -> Mask:
    """Return (J, N) whether a job may take a count."""
    limits = np.array([(r.low, r.high, r.asked) for r in requests])
    low, high, asked = limits.T[:, :, None]
    within = (grid.counts >= low) & (grid.counts <= high)
    return np.asarray((grid.ladder & within) | (grid.counts == asked))


def _best_batch(grid: Grid, worth: Floats) -> tuple[Floats, Rows]:
    """Return (J, N, S) the best rate over the batches, and the index of the first that gives it.

    A batch uses no shared resource, so the fastest is best; with `sync_w` a slower batch may draw
    less, which is neglected.
    """
    batches = worth.shape[1]
    speed = grid.speed.reshape(-1, batches)
    best = (worth[:, None, :] * speed).argmax(axis=2)
    of_job, of_speed = np.arange(len(worth))[:, None], np.arange(len(speed))
    rate = worth[of_job, best] * speed[of_speed, best]
    shape = (len(worth), *grid.speed.shape[:2])
    return rate.reshape(shape), best.reshape(shape)


def _pruned(grid: Grid, offered: Mask, rate: Floats, batch: Rows, mind_power: bool) -> Mask:
    """Return (J, N, S) the options that are not dominated.

    Being in one rack is a restriction: a row of span rack dominates only rows of that span.
    """
    power_w = _power_w(grid, batch) if mind_power else None

    def among(some: Mask | slice) -> Mask:
        if power_w is None:
            return fastest_per_gpus(offered[:, some], rate[:, some])
        return undominated(offered[:, some], rate[:, some], power_w[:, some], grid.counts[some])

    racks = grid.span == RACK
    if not np.count_nonzero(racks):
        return among(slice(None))
    kept = np.zeros_like(offered)
    kept[:, ~racks] = among(~racks)
    narrow = grid.span != CLUSTER
    kept[:, racks] = among(narrow)[:, racks[narrow]]
    return kept


def _power_w(grid: Grid, batch: Rows) -> Floats:
    """Return (J, N, S) the watts with the batches of these indices."""
    n, s = np.ogrid[: batch.shape[1], : batch.shape[2]]
    return grid.power_w[n, s, batch]
