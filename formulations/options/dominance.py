"""Dominance between the options of one job in one pool.

An option is dominated if another one has a rate at least as high with no more GPUs (and, where
power matters, no more watts). No plan needs it: swapping it for the other one stays feasible and
is worth as much, as long as values rise with the rate. Being in one rack is a restriction, so an
option of span rack dominates none of another span; nor does one that crosses racks dominate it.
"""

import numpy as np

from ronda.formulations.clock import checkpoint
from ronda.formulations.options.table import CLUSTER, RACK
from ronda.instances.arrays import Floats, Mask, Rows


def undominated(
    offered: Mask, rate: Floats, power_w: Floats | None, gpus: Floats, span: Floats
) -> Mask:
    """Return (J, R) what no option of the same job beats on all of rate, GPUs and watts.

    Of options that are equal in all three, the first (lowest clock) is kept.

    Parameters
    ----------
    offered, rate, power_w
        (J, R) which options exist, their work per second, and watts if they matter.
    gpus, span
        (R,) GPUs and index into `SPANS`.
    """
    job, row = np.nonzero(offered)
    costs = [gpus[row]]
    if power_w is not None:
        costs.append(power_w[job, row])
    if np.count_nonzero(span == RACK):
        costs += [span[row] == RACK, span[row] == CLUSTER]
    kept = np.zeros_like(offered)
    good = unbeaten(job, rate[job, row], np.array(costs, dtype=float))
    kept[job[good], row[good]] = True
    return kept


def unbeaten(group: Rows, value: Floats, costs: Floats) -> Mask:
    """Tell (K,) which options no other option of the same group beats.

    An option is beaten by one of its group that is worth at least as much and costs no more of
    anything; of equal ones the first is kept.

    One pass for each level, a set of costs of all resources but the one with most different costs:
    among the options at or below the level, better ones first, what is the least cost so far?

    Parameters
    ----------
    group
        (K,) options are compared within a group; equal numbers need not be adjacent.
    value
        (K,) what each is worth.
    costs
        (R, K) what each uses of every resource.
    """
    checkpoint()
    order = np.lexsort((*costs[::-1], -value, group))  # who beats an option comes before it
    if not len(order):
        return np.ones(0, dtype=bool)
    checkpoint()
    distinct = [np.unique(cost) for cost in costs]
    ranks = np.array([d.searchsorted(c) for d, c in zip(distinct, costs, strict=True)])[:, order]
    sizes = [len(different) for different in distinct]
    widest = sizes.index(max(sizes))
    cost, others = ranks[widest], np.delete(ranks, widest, axis=0)
    level, levels = np.zeros(len(order), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for rank in others:
        both = level * len(order) + rank
        _, levels, level = np.unique(both, return_index=True, return_inverse=True)
    # Every group lies below all those before, so that what is least so far begins again with it.
    key, depth = group[order], np.zeros(len(order), dtype=np.int64)
    np.cumsum(key[1:] != key[:-1], out=depth[1:])
    depth *= -(sizes[widest] + 1)
    kept = np.ones(len(order), dtype=bool)
    for at in levels:  # the first option of each
        checkpoint()
        within = (others <= others[:, at, None]).all(axis=0)
        least = np.minimum.accumulate(np.where(within, cost, sizes[widest]) + depth)
        own = np.flatnonzero(level[1:] == level[at]) + 1
        kept[own] = cost[own] + depth[own] < least[own - 1]
    result = np.empty_like(kept)
    result[order] = kept
    return result
