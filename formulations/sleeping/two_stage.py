r"""How many nodes stay awake now, as two-stage lot sizing over quantile paths of the peak.

    min  A + sum_s p_s sum_k (A_sk + price [A_sk > A_s(k-1)]),   A_s0 = A
    with  A_sk >= needed + q_sk,   A >= needed + q(1 - eps)

Path s says how far the most needed in the next k steps lies above what is needed now, at one level
of a forecast; its weight p_s is the part of all levels that is nearest. For a number A that stays,
the time until the next wake-up depends on nothing else than that peak, so the paths give its
distribution exactly as the forecast has it. The last line is the chance constraint: with
probability 1 - eps nothing is missing for the steps of a lead. What lies above the need is the
buffer: it follows the forecast, and so varies with time.

Numbers are counted above what is needed now, so that one table serves all steps of a series.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ronda.formulations.sleeping.lot_sizing import build
from ronda.instances.arrays import Floats, Ints

if TYPE_CHECKING:
    import pyomo.environ as pyo


def weights(levels: tuple[float, ...]) -> Floats:
    """Return (L,) the part of the levels 0 to 1 that is nearest to each."""
    edges = [0.0, *((a + b) / 2 for a, b in pairwise(levels)), 1.0]
    return np.diff(edges)


def whole(paths: Floats) -> Ints:
    """Return paths in whole nodes, as few as are enough."""
    return np.ceil(paths - 1e-6).astype(np.int64)


def costs(paths: Ints, part: Floats, price: float) -> Floats:
    """Return (T, X) the cost of 0, 1, ... nodes above the need, now and until the paths end.

    Backward dynamic programming on all paths (L, T, K) with their parts (L,): with v_k(a) the least
    cost of the steps after k, a nodes awake in step k,
    ``v_k(a) = min(min_{d <= b <= a} (b + v_{k+1}(b)), price + min_{b >= d} (b + v_{k+1}(b)))``.
    """
    above = np.arange(max(0, int(paths.max(initial=0))) + 1)
    total = np.zeros((paths.shape[1], len(above)))
    for path, share in zip(paths, part.tolist(), strict=True):
        value = np.zeros_like(total)
        for k in range(path.shape[1] - 1, -1, -1):
            value = np.where(above >= path[:, k, None], above + value, np.inf)
            value = np.minimum.accumulate(value, axis=1)
            value = np.minimum(value, price + value[:, -1:])
        total += share * value
    return np.asarray(total + above)


def wanted(needed: Ints, cost: Floats, floor: Ints) -> Ints:
    """Return the (T,) nodes that cost least by the rows of `cost` (T, X), if free to choose.

    They are at least `floor` (T,) above what is needed.
    """
    above = np.arange(cost.shape[1])
    low = np.minimum(floor, cost.shape[1] - 1)
    return np.asarray(needed + np.where(above >= low[:, None], cost, np.inf).argmin(axis=1))


def roll(needed: Ints, total: Ints, least: Ints, first: int, *, keep: int, buffer: int) -> Ints:
    """Return the (T,) nodes awake if each step knows how many cost least (T,).

    A node that is missing wakes in the step in which it is needed, with as many others as cost
    least. A node goes to sleep if that has cost least for `keep` steps: forecasts differ from step
    to step, and the lowest of them would decide otherwise. Before the `first` step with a forecast
    nobody sleeps, and `buffer` nodes above the need wake.
    """
    active = np.zeros_like(needed)
    now = int(needed[0]) + buffer
    for t, need in enumerate(needed.tolist()):
        now = min(now, int(total[t]))
        if now < need:
            now = need + buffer if t < first else int(least[t])
        elif t >= first:
            recent = least[max(first, t - keep + 1) : t + 1]
            now = max(need, min(now, int(recent.max())))
        now = min(now, int(total[t]))
        active[t] = now
    return active


def build_two_stage(paths: Ints, part: Floats, price: float, low: int) -> "pyo.ConcreteModel":
    """Return the model of one step in Pyomo: `now` and, by path (L, K), a lot sizing each."""
    import pyomo.environ as pyo

    most = max(low, int(paths.max(initial=0)))
    model = pyo.ConcreteModel(name="sleeping-two-stage")
    model.now = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(low, most))
    model.paths = pyo.RangeSet(0, len(paths) - 1)
    model.path = pyo.Block(model.paths, rule=lambda block, s: _path(block, paths[s], price, most))
    model.first = pyo.Constraint(model.paths, rule=lambda m, s: m.path[s].plan.awake[0] == m.now)
    later = sum(float(part[s]) * model.path[s].plan.cost_of for s in model.paths)
    model.cost = pyo.Objective(expr=model.now + later)
    return model


def _path(block: Any, path: Ints, price: float, most: int) -> None:
    """State one path: its step 0 is now, whose cost is counted once."""
    least = np.concatenate([[0], np.maximum(path, 0)])
    block.plan = build(least, np.full(len(least), most), price)
    block.plan.cost.deactivate()
    block.plan.cost_of = block.plan.cost.expr - block.plan.awake[0]
