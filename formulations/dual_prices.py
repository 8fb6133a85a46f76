"""The prices at which the Lagrangian bound of a market is least.

If no job may choose between pools, the bound is a sum of one convex piecewise linear function per
pool for every price of watts: all pools are searched at once, each in a bracket whose next point
is where the tangents at its ends meet. The price of watts is searched likewise around that. Where
jobs choose between pools this is a start only, and subgradient steps follow (Polyak's step towards
a level below the best bound). Every bound on the way is valid; the least one counts.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.market import Market

Floats = NDArray[np.float64]

# A bracket ends when its tangents promise less than this share of improvement.
TOLERANCE = 1e-9
GPU_STEPS, WATT_STEPS, SUBGRADIENT_STEPS = 24, 16, 48


@dataclass(slots=True)
class Search:
    """Evaluates prices of a market and keeps those with the least bound."""

    market: Market
    prices: Floats = field(init=False)
    bound: float = field(init=False, default=float("inf"))

    def __post_init__(self) -> None:
        self.prices = np.zeros(len(self.market.capacity))

    def at(self, gpu_prices: Floats, watt_price: float) -> tuple[float, Floats, Floats, Floats]:
        """Return the bound at these prices and, by pool, profit, GPUs and watts of the picks."""
        m = self.market
        prices = np.append(gpu_prices, watt_price) if m.limits_watts else gpu_prices
        picked, profit = m.picks(prices)
        bound = float(prices @ m.capacity + profit.sum())
        if bound < self.bound:
            self.bound, self.prices = bound, prices
        pool = m.pool[picked]
        sums = (np.bincount(pool, x, m.pools) for x in (profit, m.gpus[picked], m.watts[picked]))
        return bound, *sums  # type: ignore[return-value]


def least_dual(market: Market) -> tuple[Floats, float]:
    """Return the (R,) prices with the least bound that was found, and that bound."""
    search = Search(market)
    value, slope = _over_gpus(search, 0.0)
    if market.limits_watts and slope < 0:
        _over_watts(search, value, slope)
    if _chooses_pools(market):
        _subgradient(search)
    return search.prices, search.bound


def _over_gpus(search: Search, watt_price: float) -> tuple[float, float]:
    """Search the prices of GPUs at a price of watts.

    Returns
    -------
    tuple
        The least bound, and its derivative by the price of watts: watts left at a mixture of
        picks that uses no more GPUs than there are.
    """
    m = search.market
    capacity = m.capacity[: m.pools]
    low, high = np.zeros(m.pools), np.zeros(m.pools)
    np.maximum.at(high, m.pool, (m.value - watt_price * m.watts) / m.gpus)
    bound, profit, gpus, watts = search.at(low, watt_price)
    low_value, low_slope, low_watts = profit, capacity - gpus, watts
    high_value, high_slope, high_watts = high * capacity, capacity, np.zeros(m.pools)
    done = (low_slope >= 0) | (high <= 0)
    high = np.where(done, 0.0, high)
    least = bound
    for step in range(GPU_STEPS):
        if done.all():
            break
        steep = np.where(done, -1.0, low_slope - high_slope)
        meet = (high_value - high_slope * high - low_value + low_slope * low) / steep
        middle = 0.5 * (low + high)
        inside = (meet > low) & (meet < high)
        # Now and then the middle, should the tangents close in from one side only.
        x = np.where(done, high, np.where(inside & (step % 4 < 3), meet, middle))
        promise = low_value + low_slope * (x - low)
        bound, profit, gpus, watts = search.at(x, watt_price)
        least = min(least, bound)
        value, slope = x * capacity + profit, capacity - gpus
        over = (slope < 0) & ~done
        under = (slope >= 0) & ~done
        low, high = np.where(over, x, low), np.where(under, x, high)
        low_value, high_value = np.where(over, value, low_value), np.where(under, value, high_value)
        low_slope, high_slope = np.where(over, slope, low_slope), np.where(under, slope, high_slope)
        low_watts, high_watts = np.where(over, watts, low_watts), np.where(under, watts, high_watts)
        met = inside & (step % 4 < 3) & (value - promise <= TOLERANCE * np.abs(value))
        done |= met | (slope == 0) | (high - low <= TOLERANCE * high)
    share = np.where(
        low_slope < 0, high_slope / np.where(low_slope < 0, high_slope - low_slope, 1.0), 1.0
    )
    mixed = share * low_watts + (1.0 - share) * high_watts
    left = float(m.capacity[-1] - mixed.sum()) if m.limits_watts else 0.0
    return least, left


def _over_watts(search: Search, value: float, slope: float) -> None:
    """Search the price of watts, given the least bound and its slope at price 0."""
    m = search.market
    greedy = m.watts > 0
    if not greedy.any():
        return
    low, low_value, low_slope = 0.0, value, slope
    high = float((m.value[greedy] / m.watts[greedy]).max())
    high_value, high_slope = _over_gpus(search, high)
    for step in range(WATT_STEPS):
        meet = (high_value - high_slope * high - low_value + low_slope * low) / (
            low_slope - high_slope
        )
        tangent = low < meet < high and step % 4 < 3
        x = meet if tangent else 0.5 * (low + high)
        promise = low_value + low_slope * (x - low)
        value, slope = _over_gpus(search, x)
        if slope < 0:
            low, low_value, low_slope = x, value, slope
        else:
            high, high_value, high_slope = x, value, slope
        if (tangent and value - promise <= TOLERANCE * abs(value)) or slope == 0:
            break


def _chooses_pools(market: Market) -> bool:
    """Tell whether some job has rows in several pools."""
    if market.pools == 1 or not len(market.first):
        return False
    least = np.minimum.reduceat(market.pool, market.first)
    return bool((np.maximum.reduceat(market.pool, market.first) > least).any())


def _subgradient(search: Search) -> None:
    """Improve prices by subgradient steps towards a level, in shares of the capacities."""
    m = search.market
    unit = 1.0 / np.maximum(m.capacity, 1.0)
    prices, ambition, idle = search.prices, 0.05, 0
    for _ in range(SUBGRADIENT_STEPS):
        before = search.bound
        picked, profit = m.picks(prices)
        bound = float(prices @ m.capacity + profit.sum())
        slope = (m.capacity - m.use(picked)) * unit
        if bound < search.bound:
            search.bound, search.prices = bound, prices
        norm = float(slope @ slope)
        if norm == 0:
            break
        idle = 0 if search.bound < before - 0.1 * ambition * abs(before) else idle + 1
        if idle > 3:
            ambition, idle, prices = 0.5 * ambition, 0, search.prices
            continue
        level = search.bound - ambition * abs(search.bound)
        prices = np.maximum(prices - (bound - level) / norm * slope * unit, 0.0)
