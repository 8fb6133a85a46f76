"""Dominance between the options of one job in one pool.

An option is dominated if another one has a rate at least as high with no more GPUs (and, where
power matters, no more watts). No plan needs it: swapping it for the other one stays feasible and
is worth as much, as long as values rise with the rate. Being in one rack is a restriction, so an
option of span rack dominates none of another span; nor does one that crosses racks dominate it.
"""

import numpy as np

from ronda.formulations.options.columns import CLUSTER, RACK
from ronda.instances.arrays import Floats, Mask

# Pairs compared at once: temporary arrays of 128 KiB stay in the cache; with MiBs it is slower.
PAIRS = 1 << 17


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
    earlier = np.tri(len(gpus), k=-1, dtype=bool).T
    may_beat_its_like = earlier | (gpus[:, None] != gpus)
    may_beat = gpus[:, None] <= gpus
    if np.count_nonzero(span == RACK):
        may_beat &= np.where(span == RACK, span[:, None] != CLUSTER, span[:, None] != RACK)
    keep = offered.copy()
    chunk = max(1, PAIRS // len(gpus) ** 2)
    for at in range(0, len(keep), chunk):
        r, p = rate[at : at + chunk], power_w[at : at + chunk]
        # [j, a, b]: a beats b
        beats = (r[:, :, None] >= r[:, None, :]) & (p[:, :, None] <= p[:, None, :]) & may_beat
        equal = (r[:, :, None] == r[:, None, :]) & (p[:, :, None] == p[:, None, :])
        beats &= ~equal | may_beat_its_like
        keep[at : at + chunk] &= ~(beats & keep[at : at + chunk, :, None]).any(axis=1)
    return keep
