"""Two-price greedy: a good answer to a round in milliseconds, and a bound on every answer.

`dual_bound` looks for the prices of GPUs and watts at which the Lagrangian bound (see `market`)
is least; `fill` starts from what jobs pick at these prices and spends what is left by value per
price.
"""

from collections.abc import Sequence

import numpy as np

from ronda.formulations.allocation.dual_prices import least_dual
from ronda.formulations.allocation.exchange import exchange
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts.market import (
    Market,
    awake_gpus,
    market,
    watts_at_least,
    watts_of_jobs,
)
from ronda.instances.arrays import Floats, Rows
from ronda.instances.round import Round

# Sums of watts in another order differ by rounding.
ROUNDING = 1e-9
EXCHANGES = 16


def fill(
    round: Round, table: OptionTable, values: Floats, *, asleep: Sequence[int] | None = None
) -> Rows:
    """Return a row for each job, or -1: a greedy choice at the dual prices.

    Respects the GPUs of each pool, the limit on power and energy (`Round.watts`), and jobs that
    must run. Where not even the idle cluster is within the limit, only rows that add no watts are
    chosen. Single nodes and racks are left to placement.

    Parameters
    ----------
    round, table
        The round and its options.
    values
        (K,) what each row is worth; not to run is worth 0.
    asleep
        Nodes that will sleep; all others are awake. None: either none, or, if power is limited,
        those that sleep now, whichever is better.

    Returns
    -------
    ndarray
        (J,) chosen rows. The same input gives the same rows; ties go to the earlier job.
    """
    if asleep is not None:
        return _fill(round, table, values, asleep)
    chosen = _fill(round, table, values, ())
    if round.watts is None or not round.asleep:
        return chosen
    other = _fill(round, table, values, round.asleep)
    worth = [float(values[rows[rows >= 0]].sum()) for rows in (chosen, other)]
    return other if worth[1] > worth[0] else chosen


def _fill(round: Round, table: OptionTable, values: Floats, asleep: Sequence[int]) -> Rows:
    watts = watts_of_jobs(round, table, asleep)
    place = market(table, values, awake_gpus(round, asleep), watts)
    prices, _ = least_dual(place)
    picked = _spend(place, prices, _affordable(place, prices))
    chosen = np.full(len(table.jobs), -1, dtype=np.int64)
    chosen[table.job[place.fixed]] = place.fixed
    chosen[table.job[place.row[picked]]] = place.row[picked]
    return chosen


def dual_bound(
    round: Round, table: OptionTable, values: Floats, *, sleeping: bool = True
) -> tuple[float, dict[str, float]]:
    """Return an upper bound on what any plan of these rows is worth, and the prices behind it.

    Parameters
    ----------
    round, table, values
        As in `fill`.
    sleeping
        Whether plans may put nodes to sleep. False is tighter.

    Returns
    -------
    tuple
        The bound, in the unit of `values`, and by constraint name (``gpus[POOL]``, ``watts``) the
        value of one more unit.
    """
    least = watts_at_least(round, table, sleeping=sleeping)
    place = market(table, values, awake_gpus(round), least)
    prices, bound = least_dual(place)
    names = [f"gpus[{pool.name}]" for pool in table.pools] + ["watts"] * place.limits_watts
    return place.fixed_value + bound, dict(zip(names, prices.tolist(), strict=True))


def _affordable(place: Market, prices: Floats) -> Rows:
    """Return what jobs pick at these prices, raised as little as needed to fit the capacities."""
    capacity = place.capacity + ROUNDING * np.maximum(1.0, place.capacity)
    picked, _ = place.picks(prices)
    raised, rise = prices, ROUNDING
    while (place.use(picked) > capacity).any():
        # What was free gets a price as well: it may be needed after all.
        top = float(place.value.max()) / np.maximum(place.capacity, 1.0)
        raised = prices * (1.0 + rise) + rise * top
        picked, _ = place.picks(raised)
        rise *= 4.0
    return picked


def _spend(place: Market, prices: Floats, picked: Rows) -> Rows:
    """Spend what is left of the capacities, and exchange steps of two jobs while that helps."""
    if not len(place.first):
        return picked
    owner = np.repeat(np.arange(len(place.first)), np.diff(place.first, append=len(place.value)))
    # Without a price, GPUs and watts still count a little, so that the frugal row goes first.
    spare = float(place.value.max()) / np.maximum(place.capacity, 1.0)
    cost = place.cost(prices + 1e-6 * spare)
    now = np.full(len(place.first), -1, dtype=np.int64)
    now[owner[picked]] = picked
    left = place.capacity - place.use(picked)
    _upgrade(place, cost, owner, now, left)
    for _ in range(EXCHANGES):
        if not exchange(place, prices, owner, now, left):
            break
        _upgrade(place, cost, owner, now, left)
    return now[now >= 0]


def _upgrade(place: Market, cost: Floats, owner: Rows, now: Rows, left: Floats) -> None:
    """Move jobs to better rows, most value per price first, while any fits."""
    while True:
        steps = _best_steps(place, cost, owner, now, left).tolist()
        if not [k for k in steps if _take(place, k, int(owner[k]), now, left)]:
            return


def _best_steps(place: Market, cost: Floats, owner: Rows, now: Rows, left: Floats) -> Rows:
    """Return each job's best step that fits for itself, the best of all first."""
    has = now >= 0
    at = np.where(has, now, 0)
    gain = place.value - np.where(has, place.value[at], 0.0)[owner]
    extra = cost - np.where(has, cost[at], 0.0)[owner]
    back = np.where(has, place.gpus[at], 0.0)[owner] * (place.pool == place.pool[at][owner])
    fits = place.gpus <= left[place.pool] + back
    if place.limits_watts:
        room = left[-1] + np.where(has, place.watts[at], 0.0)[owner]
        fits &= place.watts <= room + ROUNDING * place.capacity[-1]
    good = np.flatnonzero(fits & (gain > ROUNDING * place.value))
    # A better row that costs no more comes before all others, the best such first.
    free = extra[good] <= 0
    merit = np.where(free, np.inf, gain[good] / np.where(free, 1.0, extra[good]))
    order = good[np.lexsort((good, -gain[good], -merit))]
    _, first = np.unique(owner[order], return_index=True)
    return np.asarray(order[np.sort(first)])


def _take(place: Market, k: int, job: int, now: Rows, left: Floats) -> bool:
    """Move a job to row k if that still fits; tell whether it did."""
    change = place.use(np.array([k]))
    if now[job] >= 0:
        change = change - place.use(now[[job]])
    if (change > np.maximum(left, 0.0) + ROUNDING * np.maximum(1.0, place.capacity)).any():
        return False
    left -= change
    now[job] = k
    return True
