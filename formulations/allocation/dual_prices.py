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

from ronda.formulations.watts.market import Market
from ronda.instances.arrays import Floats, Mask

# A bracket ends when its tangents promise less than this share of improvement.
TOLERANCE = 1e-9
GPU_STEPS, WATT_STEPS, SUBGRADIENT_STEPS = 24, 16, 48
# Found by trial on small random markets with two and three pools: bounds within 0.3 % of the least.
DEFLECTION, PATIENCE = 0.5, 3


@dataclass(frozen=True, slots=True)
class Point:
    """The bound at some prices, split by pool.

    Attributes
    ----------
    total
        The bound.
    price, value, slope, watts
        (P,) price of a pool's GPUs, the pool's part of the bound, its derivative (GPUs left), and
        the watts of the rows that jobs pick in the pool.
    """

    total: float
    price: Floats
    value: Floats
    slope: Floats
    watts: Floats

    def where(self, mask: Mask, other: "Point") -> "Point":
        """Return this point in the masked pools, the other elsewhere."""
        names = ("price", "value", "slope", "watts")
        merged = (np.where(mask, getattr(self, n), getattr(other, n)) for n in names)
        return Point(self.total, *merged)


@dataclass(slots=True)
class Search:
    """Evaluates prices of a market and keeps those with the least bound."""

    market: Market
    prices: Floats = field(init=False)
    bound: float = field(init=False, default=float("inf"))

    def __post_init__(self) -> None:
        self.prices = np.zeros(len(self.market.capacity))

    def at(self, prices: Floats) -> tuple[float, NDArray[np.int64], Floats]:
        """Return the bound at (R,) prices, the rows picked, and their profits."""
        picked, profit = self.market.picks(prices)
        bound = float(prices @ self.market.capacity + profit.sum())
        if bound < self.bound:
            self.bound, self.prices = bound, prices
        return bound, picked, profit

    def point(self, gpu_prices: Floats, watt_price: float) -> Point:
        """Return the bound at these prices, split by pool."""
        m = self.market
        prices = np.append(gpu_prices, watt_price) if m.limits_watts else gpu_prices
        total, picked, profit = self.at(prices)
        capacity, pool = m.capacity[: m.pools], m.pool[picked]
        used = np.bincount(pool, m.gpus[picked], m.pools)
        value = gpu_prices * capacity + np.bincount(pool, profit, m.pools)
        watts = np.asarray(np.bincount(pool, m.watts[picked], m.pools), dtype=float)
        return Point(total, gpu_prices, value, np.asarray(capacity - used), watts)


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
        The least bound, and its derivative by the price of watts: watts left by a mixture of
        picks that uses no more GPUs than there are.
    """
    m = search.market
    top = np.zeros(m.pools)
    np.maximum.at(top, m.pool, (m.value - watt_price * m.watts) / m.gpus)
    low = search.point(np.zeros(m.pools), watt_price)
    done = low.slope >= 0
    high = low if done.all() else search.point(top * (1.0 + TOLERANCE), watt_price)
    least, price = min(low.total, high.total), low.price
    for step in range(GPU_STEPS):
        if done.all():
            break
        meet = _meet(low, high, done)
        # Now and then the middle, should the tangents close in from one side only.
        tangent = (low.price < meet) & (meet < high.price) & (step % 4 < 3)
        price = np.where(done, price, np.where(tangent, meet, 0.5 * (low.price + high.price)))
        promise = low.value + low.slope * (price - low.price)
        here = search.point(price, watt_price)
        least = min(least, here.total)
        low = here.where(~done & (here.slope < 0), low)
        high = here.where(~done & (here.slope >= 0), high)
        done |= tangent & (here.value - promise <= TOLERANCE * np.abs(here.value))
        done |= (here.slope == 0) | (high.price - low.price <= TOLERANCE * high.price)
    if not m.limits_watts:
        return least, 0.0
    over = low.slope < 0
    share = np.where(over, high.slope / np.where(over, high.slope - low.slope, 1.0), 1.0)
    mixed = share * low.watts + (1.0 - share) * high.watts
    return least, float(m.capacity[-1] - mixed.sum())


def _meet(low: Point, high: Point, done: Mask) -> Floats:
    """Return (P,) the prices at which the tangents at the ends of the brackets meet."""
    steep = np.where(done, 1.0, high.slope - low.slope)
    rise = low.value - low.slope * low.price - high.value + high.slope * high.price
    return np.asarray(rise / np.where(steep > 0, steep, 1.0))


def _over_watts(search: Search, value: float, slope: float) -> None:
    """Search the price of watts, given the least bound and its slope at price 0."""
    m = search.market
    greedy = m.watts > 0
    if not greedy.any():
        return
    low, low_value, low_slope = 0.0, value, slope
    high = float((m.value[greedy] / m.watts[greedy]).max()) * (1.0 + TOLERANCE)
    high_value, high_slope = _over_gpus(search, high)
    for step in range(WATT_STEPS):
        rise = low_value - low_slope * low - high_value + high_slope * high
        meet = rise / (high_slope - low_slope)
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
    """Improve prices by deflected subgradient steps towards a level, in shares of the capacities.

    The level is below the best bound by an ambition that halves when steps no longer help.
    """
    m = search.market
    unit = 1.0 / np.maximum(m.capacity, 1.0)
    prices, ambition, idle = search.prices, 0.05, 0
    way = np.zeros(len(prices))
    for _ in range(SUBGRADIENT_STEPS):
        before = search.bound
        bound, picked, _ = search.at(prices)
        slope = (m.capacity - m.use(picked)) * unit
        # A price of 0 cannot fall; its slope would only shorten the step of the others.
        slope[(prices <= 0) & (slope > 0)] = 0.0
        way = slope + DEFLECTION * way
        if way @ slope <= 0:
            way = slope
        if not way.any():
            break
        idle = 0 if search.bound < before - 0.1 * ambition * abs(before) else idle + 1
        if idle > PATIENCE:
            ambition, idle, prices, way = 0.5 * ambition, 0, search.prices, np.zeros(len(prices))
            continue
        gap = bound - search.bound + ambition * abs(search.bound)
        prices = np.maximum(prices - gap / float(way @ way) * way * unit, 0.0)
