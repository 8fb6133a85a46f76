"""Reservations: what jobs that nobody may stop take from a gang that waits for their GPUs.

Jobs that may be stopped make room for a gang as soon as it is worth more than they are. Those that
may not keep it waiting until they end, and as long as others like them start beside, it never
fits. So the gang at the head, the one of most value of those that cannot start, is given the
earliest start S for which enough of them have ended, by what is believed of them. As long as some
of the F GPUs that are free now must stay free for that, an option of n of them that is expected to
last for L > S seconds and cannot be stopped loses ::

    (1 - S / L) v n / F

by the second, with v the value of the gang: all of v if they all were taken for good. What ends
before S loses nothing (backfill). GPUs stay idle (draining) where the gang is worth more than what
else could run on them, which sooner or later it is, as it ages.
"""

from typing import NamedTuple

import numpy as np

from ronda.formulations.objectives.outlook import Outlook
from ronda.instances.arrays import Floats, Mask


class Reservation(NamedTuple):
    """The start of a job in `in_s` seconds on a pool, and its value by GPU that is free now."""

    job: int
    pool: int
    in_s: float
    worth: float


def less_reserved(o: Outlook, values: Floats) -> Floats:
    """Return (K,) values less what options take from the gang at the head, if there is one."""
    stays = np.array([not state.job.preemptible for state in o.table.jobs], dtype=bool)
    if not stays.any():
        return values
    head = reservation(o, values)
    if head is None:
        return values
    t = o.table
    takes = stays[t.job] & ~t.must_run[t.job] & (t.pool == head.pool) & (t.job != head.job)
    beyond = np.maximum(0.0, 1.0 - head.in_s / np.maximum(o.left_s, head.in_s))
    return np.where(takes, values - head.worth * t.gpus * beyond, values)


def reservation(o: Outlook, values: Floats) -> Reservation | None:
    """Return the reservation of the gang of most value that does not fit beside who stays.

    None if every job does, or enough end in time. A gang counts by its narrowest options.
    """
    t = o.table
    staying = t.must_run[t.job] & t.current
    held = np.bincount(t.pool[staying], t.gpus[staying], minlength=len(t.pools))
    free = np.array([pool.gpus for pool in t.pools]) - held
    waits = ~t.must_run[t.job] & (t.gpus == o.by_row(o.least_gpus)) & (values > 0)
    waits &= _never(o, t.gpus <= free[t.pool])[t.job]
    if not waits.any():
        return None
    k = int(np.where(waits, values, -np.inf).argmax())
    pool, gpus = int(t.pool[k]), float(t.gpus[k])
    own = staying & (t.pool == pool)
    order = np.argsort(o.left_s[own], kind="stable")
    ends_s, there = o.left_s[own][order], free[pool] + np.cumsum(t.gpus[own][order])
    enough = int(np.searchsorted(there, gpus))
    if enough == len(there) or there[enough] - gpus >= free[pool]:
        return None  # the pool is too small today, or what ends leaves room for others
    worth = float(values[k]) / float(free[pool])
    return Reservation(int(t.job[k]), pool, float(ends_s[enough]), worth)


def _never(o: Outlook, rows: Mask) -> Mask:
    """Return (J,) whether none of a job's rows is one of some."""
    found = np.ones(len(o.table.jobs), dtype=bool)
    found[o.table.job[rows]] = False
    return found
