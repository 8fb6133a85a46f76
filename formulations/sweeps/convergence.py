"""How fast a loss falls: Hermes's measure of convergence.

Hermes (Son et al., *Electronics* 2021) prefers the jobs that converge fastest; its formula is not
public. INFERRED is what stands here: a loss is divided by the largest that was seen, which makes
scales comparable, and the fall from one report to the next is smoothed.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import inf


def slope(losses: Sequence[float], weight: float = 0.5) -> float:
    """Return by how much the normalised loss falls per report, exponentially smoothed.

    ``n_k = l_k / max(l_0 .. l_k)``, ``c_k = w (n_{k-1} - n_k) + (1 - w) c_{k-1}``; the first c is
    not smoothed. Minus infinity once the loss has diverged.

    Parameters
    ----------
    losses
        At least two: before the first epoch, and after each.
    weight
        w, above 0 to 1 (no smoothing).
    """
    return _slope(tuple(losses), weight)


@lru_cache(maxsize=65536)
def _slope(losses: tuple[float, ...], weight: float) -> float:
    largest, before, smooth = losses[0], 1.0, 0.0
    for k, loss in enumerate(losses[1:], start=1):
        if loss == inf:
            return -inf
        largest = max(largest, loss)
        now = loss / largest
        fall, before = before - now, now
        smooth = fall if k == 1 else weight * fall + (1 - weight) * smooth
    return smooth


def overtakes(waiting: float, running: float, hysteresis: float) -> bool:
    """Tell whether a waiting slope exceeds a running one by a share of its size."""
    if running == -inf:
        return waiting > running
    return waiting > running + hysteresis * abs(running)
