"""Lot sizing: how many nodes stay awake if awake nodes and wake-ups both cost.

    min  sum_t  A_t + price [A_t > A_{t-1}]     with  least_t <= A_t <= most_t

A wake-up is a set-up and may wake any number of nodes. A node awake for a step costs 1, so the
price is in node-steps. If `least` is the true demand, the optimum is the bound of perfect
foresight, which no controller can beat. If `least` is the quantile q_t of a forecast at level 1 -
eps, it is the deterministic equivalent of the chance constraint P(A_t >= needed_t) >= 1 - eps for
each step separately (Charnes and Cooper, *Chance-constrained programming*, Management Science
1959).

`least_cost` solves the problem exactly by dynamic programming over the number of awake nodes, and
`Oracle` does so for a whole series. With quantile paths of the peak, the problem becomes a
two-stage model of the number of nodes awake now::

    min  A + sum_s p_s sum_k (A_sk + price [A_sk > A_s(k-1)]),   A_s0 = A
    with  A_sk >= needed + q_sk,   A >= needed + q(1 - eps)

Path s is the rise of the peak demand in the next k steps above the current demand, at one level of
a forecast. Its weight p_s is the part of the interval from 0 to 1 that is nearest to that level. If
the number A stays constant, the time until the next wake-up depends only on the peak, so the paths
give the distribution of that time exactly as forecast. The last line is the chance constraint: with
probability 1 - eps no node is missing during the lead. The nodes above the demand are the buffer,
which follows the forecast and so varies with time.

Numbers of nodes are counted from the current demand, so that one table serves all steps of a
series.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

import msgspec
import numpy as np

from ronda.instances.base import Floats, Ints
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.systems.helios.controllers import Control
from ronda.systems.helios.forecasts import causal

Price = Annotated[float, msgspec.Meta(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LotSizing:
    """A controller that solves two-stage lot sizing on forecasts of the peak in every step.

    Attributes
    ----------
    price
        Cost of a wake-up, in node-steps awake.
    hours
        Horizon of the plan in hours.
    eps, lead
        With probability 1 - eps no node is missing for `lead` steps.
    keep
        Number of steps for which sleep must pay off before a node goes to sleep.
    forecast
        The forecast: LightGBM (boosted), the time of day (seasonal), or no change (last).
    history
        An earlier demand series, a name or a file, from which ``boosted`` learns.
    """

    price: Price = 50.0
    hours: Annotated[float, msgspec.Meta(gt=0, le=24)] = 18.0
    eps: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.2
    lead: Annotated[int, msgspec.Meta(ge=1)] = 6
    keep: Annotated[int, msgspec.Meta(ge=1)] = 9
    forecast: Literal["boosted", "seasonal", "last"] = "boosted"
    history: str = ""

    def control(self, series: Demand) -> Control:
        """Solve every step exactly by dynamic programming."""
        made = causal(series, "peak", self.forecast, self.history)
        steps = max(1, round(self.hours * 3600 / series.step_s))
        cost = costs(whole(made.paths(steps)), weights(made.levels), self.price)
        floor = np.maximum(whole(made.quantile(1 - self.eps, self.lead)[:, -1]), 0)
        least = wanted(series.needed_nodes, cost, floor)
        active = roll(
            series.needed_nodes,
            series.total_nodes,
            least,
            made.first,
            keep=self.keep,
            buffer=5,  # nodes awake above the demand while there is no forecast, as in CES
        )
        return Control(active, "history", made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """A controller that knows the future and so gives the bound of perfect foresight.

    Attributes
    ----------
    price
        Cost of a wake-up, in node-steps awake.
    lead
        Number of steps that a node is awake before it is needed.
    """

    price: Price = 150.0
    lead: Annotated[int, msgspec.Meta(ge=0)] = 0

    def control(self, series: Demand) -> Control:
        """Solve lot sizing over the whole series."""
        ahead = np.concatenate([series.needed_nodes, np.zeros(self.lead, dtype=np.int64)])
        least = np.lib.stride_tricks.sliding_window_view(ahead, self.lead + 1).max(axis=1)
        most = series.total_nodes
        return Control(least_cost(np.minimum(least, most), most, self.price), "oracle")


def least_cost(least: Ints, most: Ints, price: float, before: int | None = None) -> Ints:
    """Return the numbers of awake nodes of least total cost, shape (T,).

    With a nodes awake in step t, V_t(a) = a + min(min_{b >= a} V_{t-1}(b), price + min V_{t-1}).

    Parameters
    ----------
    least, most
        Number of nodes that must be awake and that can be, shape (T,).
    price
        Cost of a wake-up, in node-steps awake.
    before
        Number of nodes awake before the first step. With None the first step counts as no wake-up.
    """
    if len(least) != len(most) or not len(least):
        raise InputError("lot sizing", f"{len(least)} and {len(most)} steps", "as many, and one")
    if (least > most).any():
        t = int((least > most).argmax())
        raise InputError(f"least[{t}]", str(least[t]), f"at most the {most[t]} nodes there are")
    if not 0 <= price < np.inf:
        raise InputError("price", f"{price:g}", "0 or more")
    nodes = np.arange(max(before or 0, int(most.max())) + 1)
    value = np.zeros(len(nodes)) if before is None else np.where(nodes == before, 0.0, np.inf)
    values = np.empty((len(least) + 1, len(nodes)))
    for t, (low, high) in enumerate(zip(least.tolist(), most.tolist(), strict=True)):
        values[t] = value
        asleep = np.minimum.accumulate(value[::-1])[::-1]  # the least of this or any larger number
        value = nodes + np.minimum(asleep, value.min() + price)
        value[:low] = np.inf
        value[high + 1 :] = np.inf
    values[-1] = value
    return _way_back(values, price)


def _way_back(values: Floats, price: float) -> Ints:
    """Return the optimal path by following the values (T + 1, nodes) from last to first step."""
    plan = np.empty(len(values) - 1, dtype=np.int64)
    now = int(values[-1].argmin()) if len(plan) else 0
    for t in range(len(plan) - 1, -1, -1):
        plan[t] = now
        stay = now + int(values[t][now:].argmin())
        now = stay if values[t][stay] <= values[t].min() + price else int(values[t].argmin())
    return plan


def weights(levels: tuple[float, ...]) -> Floats:
    """Return the part of the interval from 0 to 1 that is nearest to each level, shape (L,)."""
    edges = [0.0, *((a + b) / 2 for a, b in pairwise(levels)), 1.0]
    return np.diff(edges)


def whole(paths: Floats) -> Ints:
    """Return the paths rounded up to whole nodes."""
    return np.ceil(paths - 1e-6).astype(np.int64)


def costs(paths: Ints, part: Floats, price: float) -> Floats:
    """Return the cost of 0, 1, ... nodes above the demand until the paths end, shape (T, X).

    The costs come from backward dynamic programming on all paths (L, T, K) with weights `part`
    (L,). Let v_k(a) be the least cost of the steps after k if a nodes are awake in step k: ``v_k(a)
    = min(min_{d <= b <= a} (b + v_{k+1}(b)), price + min_{b >= d} (b + v_{k+1}(b)))``.
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
    """Return the numbers of nodes of least cost in the rows of `cost` (T, X), shape (T,).

    They exceed the demand by at least `floor` (T,).
    """
    above = np.arange(cost.shape[1])
    low = np.minimum(floor, cost.shape[1] - 1)
    return np.asarray(needed + np.where(above >= low[:, None], cost, np.inf).argmin(axis=1))


def roll(needed: Ints, total: Ints, least: Ints, first: int, *, keep: int, buffer: int) -> Ints:
    """Return the numbers of awake nodes, shape (T,), if `least` (T,) has least cost in each step.

    A missing node wakes in the step that needs it, together with as many others as cost least. A
    node goes to sleep only if sleep has cost least for `keep` steps; otherwise the lowest of
    several varying forecasts would decide. Before step `first`, which has the first forecast, no
    node goes to sleep, and `buffer` nodes above the demand wake.
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
