"""Leaving out options that cannot be in a best allocation, before a model is built of the rest."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts.market import watts_at_least
from ronda.instances.arrays import Floats, Rows
from ronda.instances.round import Round


def undominated(group: Rows, value: Floats, costs: Floats) -> NDArray[np.bool_]:
    """Tell (K,) which options no other option of the same group beats.

    An option is beaten by one of its group that is worth at least as much and costs no more of
    anything; of equal ones the first is kept.

    Parameters
    ----------
    group
        (K,) options are compared within a group; equal numbers need not be adjacent.
    value
        (K,) what each is worth.
    costs
        (R, K) what each uses of every resource.
    """
    if len(costs) == 1:
        return _undominated_at_one_cost(group, value, costs[0])
    order = np.lexsort((*costs[::-1], -value, group))  # who beats an option comes before it
    key, sorted_costs = group[order], costs[:, order]
    first = np.searchsorted(key, key, side="left")
    rank = np.arange(len(key)) - first  # place within the group
    kept = np.ones(len(key), dtype=bool)
    active = np.flatnonzero(rank > 0)
    step = 1
    while len(active):
        cheaper = sorted_costs[:, active - step] <= sorted_costs[:, active]
        beaten = cheaper.all(axis=0)
        kept[active[beaten]] = False
        step += 1
        active = active[~beaten & (rank[active] >= step)]
    result = np.empty_like(kept)
    result[order] = kept
    return result


def _undominated_at_one_cost(group: Rows, value: Floats, cost: Floats) -> NDArray[np.bool_]:
    """Tell the same where there is one resource: who is worth more than all that cost no more.

    By group, cost and falling value, an option must be worth more than the best before it; values
    are compared by rank, so that those of another group can be set below all of this one.
    """
    count = len(value)
    kept = np.ones(count, dtype=bool)
    if not count:
        return kept
    order = np.lexsort((-value, cost, group))
    ascending = np.sort(value)
    rank = np.searchsorted(ascending, value[order])
    rank += group[order] * count
    kept[order[1:]] = rank[1:] > np.maximum.accumulate(rank)[:-1]
    return kept


def option_losses(
    round: Round,
    table: OptionTable,
    values: Floats,
    prices: Mapping[str, float],
    *,
    sleeping: bool,
) -> tuple[Floats, float]:
    """Return by how much any plan that uses an option falls short of the dual bound, and the bound.

    With prices λ and uses a, a job's best profit is ``u_j = max(0, max_k v_k - λ a_k)`` and option
    k of job j loses ``u_j - (v_k - λ a_k) >= 0``: a plan is worth at most the bound less the
    losses of its options (see `ronda.formulations.watts.market`).

    Parameters
    ----------
    round, table, values
        The round, its options and (K,) what they are worth.
    prices
        By constraint name, as `ronda.formulations.allocation.greedy_fill.dual_bound` returns them.
    sleeping
        As there.

    Returns
    -------
    tuple
        (K,) losses, infinite for options worth no more than not to run and 0 for those of jobs
        that must run; and the bound at these prices.
    """
    must = table.must_run[table.job]
    rows = np.flatnonzero(~must & (values > 0))
    unit = np.array([prices[f"gpus[{pool.name}]"] for pool in table.pools])
    cost: Floats = unit[table.pool] * table.gpus
    bound = float(unit @ np.array([pool.gpus for pool in table.pools], dtype=float))
    power = watts_at_least(round, table, sleeping=sleeping)
    if power is not None:
        cost = cost + prices["watts"] * power[1]
        bound += prices["watts"] * power[0]
    profit = values - cost
    best = np.zeros(len(table.jobs))
    np.maximum.at(best, table.job[rows], profit[rows])
    losses = np.full(len(table), np.inf)
    losses[must] = 0.0
    losses[rows] = best[table.job[rows]] - profit[rows]
    return losses, bound + float(best.sum() + profit[must].sum())
