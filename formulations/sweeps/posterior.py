"""What the losses of a sweep's trials so far say of where each of them will end.

A loss is taken to fall on as it has fallen lately, in the logarithm of the reports: by b for each
unit of log(1 + k), from the middle of its reports to the last. How much of such a fall comes true,
rho, differs from sweep to sweep (losses stall, or start slowly) and is common to its trials: it is
learnt, by Bayesian linear regression, from what every trial did after each of its reports. Falls
are relative to the loss they start from, and their error grows as that of a random walk::

    l(k') = l(k) (1 - rho x) + e,   x = b (log(1 + k') - log(1 + k)) / l(k)
    e / l(k) ~ Normal(0, s^2 (log(1 + k') - log(1 + k)))

So the trials that lead teach what to expect of those behind. Nothing is used but reported losses of
the same sweep.
"""

import sys
from collections.abc import Iterable
from functools import lru_cache
from math import erfc, hypot, inf, log1p, sqrt
from typing import NamedTuple

RHO, TRUST = 0.0, 5.0
"""Mean of rho before anything is seen, and how many falls that counts as."""

LEAST_ERROR = 0.1
"""The least s that is believed: most trials fall smoothly or not at all, but some begin late."""


MOST = 1.5
"""The largest rho that is believed."""

STEEPEST = 1e6
"""The largest relative fall or rise that counts; what is beyond is no training's."""


class Evidence(NamedTuple):
    """What a trial shows of rho: sums over its falls, each over its step in log(1 + k)."""

    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0
    steps: int = 0


class Final(NamedTuple):
    """What is believed of the loss that a trial ends at: a normal distribution."""

    mean: float
    sd: float

    def chance_below(self, loss: float) -> float:
        """Return the probability that it is less than some loss."""
        return 0.5 * erfc((self.mean - loss) / (sqrt(2) * self.sd)) if self.sd > 0 else 0.0


class Posterior:
    """The belief of one sweep, from the losses of all its trials."""

    def __init__(self, trials: Iterable[tuple[float, ...]]) -> None:
        found = [evidence(losses) for losses in trials if len(losses) > 2] or [Evidence()]
        xx, xy, yy, steps = (sum(column) for column in zip(*found, strict=True))
        prior = TRUST * xx / steps if xx else 1.0
        self.rho = min(MOST, max(0.0, (xy + prior * RHO) / (xx + prior)))
        error = yy - 2 * self.rho * xy + self.rho**2 * xx
        self.variance = max(LEAST_ERROR**2, error / max(1, steps))
        self.rho_variance = self.variance / (xx + prior)

    def final(self, losses: tuple[float, ...], reports: int) -> Final:
        """Return where a trial will end after `reports` reports; infinite once it has diverged."""
        if losses[-1] == inf:
            return Final(inf, 0.0)
        ahead = max(0.0, log1p(reports) - log1p(len(losses) - 1))
        fall = min(trend(losses) * ahead, sys.float_info.max)
        mean = max(0.0, losses[-1] - self.rho * fall)
        return Final(
            mean, hypot(sqrt(self.variance * ahead) * losses[-1], sqrt(self.rho_variance) * fall)
        )


def trend(losses: tuple[float, ...]) -> float:
    """Return b: by how much a loss has fallen lately per unit of log(1 + k), 0 if it has risen."""
    last = len(losses) - 1
    middle = last // 2
    fall = losses[middle] - losses[last]
    return max(0.0, fall) / (log1p(last) - log1p(middle))


@lru_cache(maxsize=65536)
def evidence(losses: tuple[float, ...]) -> Evidence:
    """Return what at least three losses show of rho; nothing after a trial has diverged."""
    xx = xy = yy = 0.0
    steps = 0
    for k in range(2, len(losses)):
        last, loss = losses[k - 1], losses[k]
        if loss == inf or not last > 0:
            continue
        step = log1p(k) - log1p(k - 1)
        x = min(trend(losses[:k]) * step / last, STEEPEST)
        y = max((last - loss) / last, -STEEPEST)
        xx += x * x / step
        xy += x * y / step
        yy += y * y / step
        steps += 1
    return Evidence(xx, xy, yy, steps)
