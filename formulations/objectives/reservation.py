"""Reservations for gangs: the value that jobs which may not be stopped take from a waiting gang.

Jobs that may be stopped make room for a gang as soon as it is worth more than they are. Jobs that
may not be stopped keep it waiting until they end, and it never fits as long as others like them
start. So the gang at the head, the one of most value among those that cannot start, is given the
earliest start S for which enough of them are believed to have ended. As long as some of the F GPUs
that are free now must stay free for it, an option of n GPUs that is expected to last for L > S
seconds and cannot be stopped loses ::

    (1 - S / L) v n / F

per second, where v is the value of the gang: all of v if all F were taken for good. An option that
ends before S loses nothing (backfill). GPUs stay idle (draining) where the gang is worth more than
any job that could run on them, as it will be sooner or later, because it ages.
"""

from typing import NamedTuple

import numpy as np

from ronda.formulations.objectives.outlook import Outlook
from ronda.instances.arrays import Floats, Mask


class Reservation(NamedTuple):
    """The start of a job in `in_s` seconds on a pool, and its value per GPU that is free now."""

    job: int
    pool: int
    in_s: float
    worth: float


def less_reserved(o: Outlook, values: Floats, head: Reservation | None) -> Floats:
    """Return (K,) values less the value that options take from the gang at the head, if any."""
    if head is None:
        return values
    t = o.table
    takes = _stays(o)[t.job] & ~t.must_run[t.job] & (t.pool == head.pool) & (t.job != head.job)
    beyond = np.maximum(0.0, 1.0 - head.in_s / np.maximum(o.left_s, head.in_s))
    return np.where(takes, values - head.worth * t.gpus * beyond, values)


def _stays(o: Outlook) -> Mask:
    return np.array([not state.job.preemptible for state in o.table.jobs], dtype=bool)


def reservation(o: Outlook, values: Floats) -> Reservation | None:
    """Return the reservation of the most valuable gang that does not fit beside jobs that must run.

    None if every job fits, or enough jobs end in time. A gang counts with its narrowest options.
    """
    if not _stays(o).any():
        return None
    t = o.table
    staying = t.must_run[t.job] & t.current
    held = np.bincount(t.pool[staying], t.gpus[staying], minlength=len(t.pools))
    free = np.array([pool.gpus for pool in t.pools]) - held
    waits = ~t.must_run[t.job] & (t.gpus == o.by_row(o.least_gpus)) & (values > 0)
    fits_nowhere = np.ones(len(t.jobs), dtype=bool)
    fits_nowhere[t.job[t.gpus <= free[t.pool]]] = False
    waits &= fits_nowhere[t.job]
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
