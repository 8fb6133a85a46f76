"""CES of Helios (Hu et al., SC 2021): when nodes sleep and wake, by two thresholds and a buffer.

The rule and its five published parameter sets are those of the artifact (HeliosArtifact,
framework/CES Service/CES_Helios.py).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ronda.instances.arrays import Floats, Ints

Forecast = Callable[[int, int], Floats]
"""From a step t and a number n: what is believed at t of steps t to t + n - 1, (n,) or fewer."""

WARM_UP = 6
"""Steps at the start that the rule only follows, and whose changes it does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CesRule:
    """Parameters of the rule; lengths are in steps.

    Attributes
    ----------
    past, ahead
        Steps behind and ahead of which means are taken (H and F).
    fall
        By how many nodes the demand must lie below its recent mean for nodes to sleep.
    falling
        By how many nodes the forecast must lie below the demand.
    least
        Fewest nodes that are put to sleep at once.
    buffer
        Nodes awake above the demand after a change.
    keep
        Steps after a wake-up in which no node goes to sleep.
    calm
        First step at which nodes may go to sleep.
    """

    past: int
    ahead: int
    fall: float
    falling: float
    least: int
    buffer: int
    keep: int
    calm: int


def _rule(*numbers: float) -> CesRule:
    past, ahead, fall, falling, least, buffer, keep, calm = numbers
    return CesRule(
        past=int(past),
        ahead=int(ahead),
        fall=fall,
        falling=falling,
        least=int(least),
        buffer=int(buffer),
        keep=int(keep),
        calm=int(calm),
    )


RULES = {
    "venus": _rule(3, 18, 0.5, 1, 2, 5, 12, 0),
    "earth": _rule(6, 18, 1, 1, 5, 5, 12, 1),
    "saturn": _rule(6, 18, 1, 1, 1, 5, 12, 0),
    "uranus": _rule(3, 18, 1, 1, 1, 7, 12, 1),
    "philly": _rule(2, 30, 0.1, 0, 1, 20, 10, 0),
}
"""The published parameters, by cluster."""


def published(forecast: Ints) -> Forecast:
    """Return a forecast that is one series, whenever it is asked: as the artifact reads its own."""
    return lambda t, n: forecast[t : t + n].astype(np.float64)


def ces(needed: Ints, total: Ints, forecast: Forecast, rule: CesRule) -> Ints:
    """Return the (T,) nodes that the rule keeps awake, for (T,) nodes needed and in total.

    A node that is missing wakes in the step in which it is needed.
    """
    active = np.zeros_like(needed)
    now, guard = 0, rule.calm
    for t, need in enumerate(needed.tolist()):
        if t < WARM_UP:
            now = need + rule.buffer
        elif now < need:
            now, guard = need + rule.buffer, t + rule.keep
        now = min(now, int(total[t]))
        if t >= WARM_UP and t >= guard and sinks(needed, t, forecast, rule):
            guard = t
            now = fewer(need, now, t, forecast, rule)
        active[t] = now
    return active


def fewer(need: int, now: int, t: int, forecast: Forecast, rule: CesRule) -> int:
    """Return the nodes that stay awake of `now` when the demand sinks: all, if it is to rise."""
    rests = forecast(t, rule.ahead).mean() >= forecast(t, 2 * rule.ahead).mean()
    least = need + rule.buffer
    return least if rests and now - min(now, least) >= rule.least else now


def sinks(needed: Ints, t: int, forecast: Forecast, rule: CesRule) -> bool:
    """Tell whether the demand lies below its recent mean, and is believed to fall further."""
    fallen = needed[t - rule.past : t].mean() - needed[t]
    falls = needed[t] - forecast(t, rule.ahead).mean()
    return bool(fallen >= rule.fall and falls >= rule.falling)


def vanilla(needed: Ints) -> Ints:
    """Return the (T,) nodes awake if each sleeps as soon as it is not needed."""
    return needed.copy()
