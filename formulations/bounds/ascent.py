"""Prices of shared resources, and the steps that improve them.

They are supergradient steps (Polyak's rule with a target that shrinks) on a bound that is concave
in the prices, such as that of `ronda.formulations.bounds.priced`. What can be stored has a price
that never rises; every other one may be anything above zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ronda.formulations.bounds.single_machine import Supply
from ronda.instances.arrays import Floats


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that jobs share.

    ``supply`` is how much there is until each time (GPU-seconds, joules), ``stored`` whether it can
    be used later. ``group`` is the group of pools whose GPUs it stands for, None for watts of all
    jobs; ``unit`` a typical use by one GPU.
    """

    supply: Supply
    stored: bool
    group: int | None
    unit: float


class Ascent:
    """Prices (M, K) per unit of each resource, and the steps that improve them."""

    PATIENCE, MOMENTUM, FIRST_TARGET = 3, 0.5, 0.3

    def __init__(self, resources: Sequence[Resource], times: Floats) -> None:
        self.stored = [r.stored for r in resources]
        self.length = np.diff(times)
        until = np.stack([r.supply.until(times) / r.unit for r in resources])
        self.supply = np.diff(until, axis=1)
        self.supply[:, 0] += until[:, 0]
        self.prices = np.zeros_like(self.supply)
        self._speed = np.zeros_like(self.prices)
        self._best = (-np.inf, self.prices, self.prices)  # total, prices, gradient
        self._ahead, self._stalled = 0.0, 0

    def step(self, total: float, use: Floats, floor: float) -> bool:
        """Move the prices; False if these are optimal.

        `total` and `use` are what the present prices give; steps are measured by `floor`, which no
        total is below.
        """
        gradient = (use - self.supply) / self.length
        start = self._best[0] == -np.inf
        if start:
            self._ahead = self.FIRST_TARGET * max(total - floor, 1.0)
        self._stalled = 0 if total > self._best[0] + 0.1 * self._ahead else self._stalled + 1
        if total > self._best[0]:
            self._best = (total, self.prices, gradient)
        if self._stalled >= self.PATIENCE:
            total, self.prices, gradient = self._best
            self._ahead *= 0.5
            self._stalled = 0
            self._speed = np.zeros_like(gradient)
        move = gradient + self.MOMENTUM * self._speed
        for m, stored in enumerate(self.stored):
            if stored:
                move[m] = falling_move(move[m], self.prices[m], self.length)
        move[(self.prices <= 0) & (move < 0)] = 0.0
        size = float((self.length * move * move).sum())
        if size <= 0:
            return False
        self._speed = move
        gap = self._best[0] + self._ahead - total
        self.prices = np.maximum(self.prices + gap / size * move, 0.0)
        for m in np.flatnonzero(self.stored).tolist():
            self.prices[m] = falling(self.prices[m], self.length)
        return True


def falling_move(move: Floats, prices: Floats, weights: Floats) -> Floats:
    """Return the closest move under which prices that never rise can go on never rising.

    Where prices are level the move must not rise; elsewhere a small one may be anything. Without
    this a supply that is there from the start, all of it in the first interval, would make the
    steps of all other prices next to nothing.
    """
    starts = np.flatnonzero(np.diff(prices, prepend=np.nan) != 0).tolist()
    level = [slice(a, b) for a, b in zip(starts, [*starts[1:], len(prices)], strict=True)]
    return np.concatenate([falling(move[part], weights[part]) for part in level])


def falling(values: Floats, weights: Floats) -> Floats:
    """Return the closest sequence that never rises (weighted least squares), by pooling."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, count = value, weight, 1
        while blocks and blocks[-1][0] < mean:
            other, mass, number = blocks.pop()
            mean = (mean * total + other * mass) / (total + mass)
            total, count = total + mass, count + number
        blocks.append((mean, total, count))
    return np.repeat([b[0] for b in blocks], [b[2] for b in blocks])
