"""Dominance between the options of one job in one pool.

An option is dominated if another one has a rate at least as high with no more GPUs (and, where
power matters, no more watts). No plan needs it: swapping it for the other one stays feasible and
is worth as much, as long as values rise with the rate. Being in one rack is a restriction, so an
option of span rack dominates none of another span; nor does one that crosses racks dominate it.
"""

import numpy as np

from ronda.formulations.options.columns import CLUSTER, RACK
from ronda.instances.arrays import Floats, Mask, Rows


def undominated(offered: Mask, rate: Floats, power_w: Floats, gpus: Floats, span: Floats) -> Mask:
    """Return (J, R) what no option of the same job beats on all of rate, GPUs and watts.

    Of options that are equal in all three, the first (lowest clock) is kept.

    Parameters
    ----------
    offered, rate, power_w
        (J, R) which options exist, their work per second and watts.
    gpus, span
        (R,) GPUs and index into `SPANS`.
    """
    job, row = np.nonzero(offered)
    costs = [gpus[row], power_w[job, row]]
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

    Parameters
    ----------
    group
        (K,) options are compared within a group; equal numbers need not be adjacent.
    value
        (K,) what each is worth.
    costs
        (R, K) what each uses of every resource.
    """
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
