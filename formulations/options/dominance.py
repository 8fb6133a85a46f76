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

    In order of group, value and costs, an option is beaten only by one before it: each pass
    compares all with those so many places before, as far as groups reach. Once half of them are
    beaten, the others are compared anew without these.

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
    left = np.lexsort((*costs[::-1], -value, group))
    key, cost, beaten, before = group[left], costs[:, left], np.zeros(len(left), dtype=bool), 1
    while before < len(left):
        checkpoint()
        beats = key[before:] == key[:-before]
        if not beats.any():
            break
        for each in cost:
            beats &= each[:-before] <= each[before:]
        beaten[before:] |= beats
        before += 1
        if 2 * np.count_nonzero(beaten) > len(left):
            left, key, cost, before = left[~beaten], key[~beaten], cost[:, ~beaten], 1
            beaten = np.zeros(len(left), dtype=bool)
    result = np.zeros(len(group), dtype=bool)
    result[left[~beaten]] = True
    return result
