"""Steps that improve the prices of shared resources.

The steps are supergradient steps (Polyak's rule with a shrinking target) on a bound that is concave
in the prices, such as that of `ronda.formulations.bounds.price_bound`. The price of a resource that
can be stored never rises; other prices may be any numbers from zero up.
"""

from collections.abc import Sequence

import numpy as np

from ronda.formulations.bounds.resources import Resource, supplied
from ronda.instances.base import Floats


class Ascent:
    """Prices (M, K) per unit of each resource, and the steps that improve them."""

    def __init__(self, resources: Sequence[Resource], times: Floats) -> None:
        self.stored = [r.stored for r in resources]
        self.length = np.diff(times)
        self.supply = supplied(resources, times)
        self.prices = np.zeros_like(self.supply)
        self._speed = np.zeros_like(self.prices)
        self._best = (-np.inf, self.prices, self.prices)  # total, prices, gradient
        self._ahead, self._stalled = 0.0, 0

    def step(self, total: float, use: Floats, floor: float) -> bool:
        """Move the prices, and return False if the present prices are optimal.

        `total` and `use` follow from the present prices. The steps scale with `floor`, a lower
        bound on all totals.
        """
        gradient = (use - self.supply) / self.length
        start = self._best[0] == -np.inf
        if start:
            self._ahead = 0.3 * max(total - floor, 1.0)
        self._stalled = 0 if total > self._best[0] + 0.1 * self._ahead else self._stalled + 1
        if total > self._best[0]:
            self._best = (total, self.prices, gradient)
        if self._stalled >= 3:
            total, self.prices, gradient = self._best
            self._ahead *= 0.5
            self._stalled = 0
            self._speed = np.zeros_like(gradient)
        move = gradient + 0.5 * self._speed
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
    """Return the closest move that keeps non-increasing prices non-increasing.

    The move must not rise where prices are level; elsewhere it is free. Without this, a supply that
    is complete in the first interval would shrink the steps of all other prices.
    """
    starts = np.flatnonzero(np.diff(prices, prepend=np.nan) != 0).tolist()
    level = [slice(a, b) for a, b in zip(starts, [*starts[1:], len(prices)], strict=True)]
    return np.concatenate([falling(move[part], weights[part]) for part in level])


def falling(values: Floats, weights: Floats) -> Floats:
    """Return the non-increasing sequence closest to `values` in weighted least squares."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, count = value, weight, 1
        while blocks and blocks[-1][0] < mean:
            other, mass, number = blocks.pop()
            mean = (mean * total + other * mass) / (total + mass)
            total, count = total + mass, count + number
        blocks.append((mean, total, count))
    return np.repeat([b[0] for b in blocks], [b[2] for b in blocks])
