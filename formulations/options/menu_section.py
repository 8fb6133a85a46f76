"""The rows of options that jobs of one application may choose from on the same terms."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ronda.formulations.models.efficiency import efficiency, scale_at
from ronda.formulations.options.dominance import fastest_per_gpus, undominated
from ronda.formulations.options.grid import (
    COLUMNS,
    FLOATS_FROM,
    GPUS,
    RATE,
    SPAN,
    Grid,
    measured_grid,
    merged,
)
from ronda.formulations.options.pools import PoolShape
from ronda.instances.arrays import Floats, Rows
from ronda.instances.profile import NoiseScale, Profile

Best = tuple[Floats, Rows]
"""(R,) rate of each row of a grid, and with which of the batches."""

# Blocks computed at once: bounds memory at a few MiB per temporary array, which caches like.
AT_ONCE = 128


class Terms(NamedTuple):
    """What all jobs that choose from a section have in common.

    Attributes
    ----------
    clocks, batches
        Clock fractions (ascending) and global batch sizes.
    prune
        Whether dominated rows are dropped.
    mind_power
        Whether watts matter in that.
    """

    clocks: tuple[float, ...]
    batches: tuple[float, ...]
    prune: bool
    mind_power: bool

    @property
    def every_clock(self) -> bool:
        """Whether more than the fastest clock of a GPU count can be an option."""
        return self.mind_power or not self.prune


class Request(NamedTuple):
    """What a job may choose from in a section; jobs with equal requests share a block of rows.

    Attributes
    ----------
    low, high, asked
        GPUs: the ladder's counts within [low, high], and `asked`.
    noise
        Gradient noise scale; None: every sample counts fully.
    """

    low: int
    high: int
    asked: int
    noise: NoiseScale | None


class Section:
    """Blocks of rows, (COLUMNS, K) floats each, remembered by request; none is to be changed.

    The rows of a block are ordered by GPUs, then span, then clock.

    Parameters
    ----------
    profile, shape, terms
        Whose, where, and on what terms.
    """

    def __init__(self, profile: Profile, shape: PoolShape, terms: Terms) -> None:
        self._profile, self._shape, self._terms = profile, shape, terms
        self._sizes, self._fully = np.array(terms.batches), np.ones(len(terms.batches))
        self._grid: Grid | None = None
        self._covered: set[int] = set()  # the GPU counts of the grid
        self._rows: dict[tuple[int, int, int], list[int]] = {}  # of the grid, for some GPUs
        self._best: dict[NoiseScale | None, Best] = {}  # of all rows of the grid
        self._blocks: dict[Request, Floats] = {}

    def __len__(self) -> int:
        """Return how many blocks are remembered."""
        return len(self._blocks)

    def knows(self, request: Request) -> bool:
        """Tell whether the block of a request is remembered."""
        return request in self._blocks

    def block(self, request: Request) -> Floats:
        """Return the block of a request that was prepared."""
        return self._blocks[request]

    def prepare(self, requests: Sequence[Request]) -> None:
        """Compute the blocks of requests together."""
        grid = self._covering({request.asked for request in requests})
        for at in range(0, len(requests), AT_ONCE):
            self._choose(grid, requests[at : at + AT_ONCE])

    def _choose(self, grid: Grid, requests: Sequence[Request]) -> None:
        """Compute the blocks of so few requests."""
        known = self._best_ways(grid, dict.fromkeys([request.noise for request in requests]))
        best = [known[request.noise] for request in requests]
        find = self._not_dominated if self._terms.every_clock else self._fastest
        for request, (rate, way), rows in zip(
            requests, best, find(grid, requests, best), strict=True
        ):
            block = self._blocks[request] = np.empty((COLUMNS, len(rows)))
            block[:FLOATS_FROM] = grid.whole[:, rows]
            block[FLOATS_FROM:] = grid.ways[:, rows, way[rows]]
            block[RATE] = rate[rows]

    def _covering(self, asked: set[int]) -> Grid:
        """Return the grid with the ladder and the counts that are asked for; it grows as needed."""
        grid, shape, terms = self._grid, self._shape, self._terms
        wanted = asked if grid is not None else {*shape.ladder, *asked}
        new = {n for n in wanted if n <= shape.pool.gpus} - self._covered
        if grid is None or new:
            more = measured_grid(
                self._profile,
                shape,
                terms.clocks,
                terms.batches,
                new,
                every_clock=terms.every_clock,
            )
            grid = self._grid = more if grid is None else merged(grid, more)
            self._covered |= new
            self._best, self._rows = {}, {}
        return grid

    def _best_ways(
        self, grid: Grid, noises: Iterable[NoiseScale | None]
    ) -> Mapping[NoiseScale | None, Best]:
        """Return how each row is best run, by noise scale.

        A batch uses no shared resource, so the fastest is best; with `sync_w` a slower batch may
        draw less, which is neglected. Of equally fast ways the first one is taken.

        Jobs of an application reach the same noise at different times: the last are remembered.
        """
        new = [noise for noise in noises if noise not in self._best]
        if len(self._best) + len(new) > AT_ONCE:
            self._best, new = {}, list(noises)
        if new:
            worth, speed = self._worth(new), grid.speed
            way = (worth[:, None] * speed).argmax(axis=2)
            rate = worth[np.arange(len(new))[:, None], way] * speed[np.arange(len(speed)), way]
            self._best.update(zip(new, zip(rate, way, strict=True), strict=True))
        return self._best

    def _worth(self, noises: Sequence[NoiseScale | None]) -> Floats:
        """Return (X, B) what a sample is worth in each batch."""
        batches, base = self._terms.batches, self._profile.base_batch
        return np.array(
            [
                self._fully
                if noise is None
                else efficiency(scale_at(noise, batches), self._sizes, base)
                for noise in noises
            ]
        )

    def _fastest(self, grid: Grid, requests: Sequence[Request], best: Sequence[Best]) -> list[Rows]:
        """Return the rows that no smaller one beats, by request."""
        found = []
        for request, (rate, _) in zip(requests, best, strict=True):
            gpus = request[:3]
            rows = self._rows.get(gpus)
            if rows is None:
                rows = self._rows[gpus] = grid.offered([gpus])[0].nonzero()[0].tolist()
            kept = fastest_per_gpus(rows, rate.tolist(), grid.span)
            found.append(np.array(kept, dtype=np.int64))
        return found

    def _not_dominated(
        self, grid: Grid, requests: Sequence[Request], best: Sequence[Best]
    ) -> list[Rows]:
        """Return the rows that no other one beats, if dominated ones are dropped, by request."""
        rate, way = np.array([r for r, _ in best]), np.array([w for _, w in best])
        kept = grid.offered([request[:3] for request in requests]) & (rate > 0)
        if self._terms.prune:
            power_w = grid.power_w[np.arange(len(grid.span)), way]
            kept = undominated(kept, rate, power_w, grid.whole[GPUS], grid.whole[SPAN])
        return [mask.nonzero()[0] for mask in kept]
