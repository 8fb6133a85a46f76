"""Reservations for gangs, by the value that jobs which may not be stopped take from a waiting gang.

Jobs that may be stopped make room for a gang as soon as its value is higher. Jobs that may not be
stopped keep the gang waiting until they end, and it never fits as long as others like them start.
So the most valuable gang that cannot start, the head, gets the earliest start S at which enough of
these jobs are expected to have ended. As long as some of the F GPUs that are free now must stay
free for the head, an option of n GPUs that is expected to last for L > S seconds and cannot be
stopped loses ::

    (1 - S / L) v n / F

per second, where v is the value of the gang. The loss is all of v if all F GPUs were taken for
good. An option that ends before S loses nothing (backfill). GPUs stay idle (draining) where the
gang has a higher value than any job that could run on them, as it will sooner or later by ageing.

**Joules.** A job may need more joules by its end than an idle cluster accrues, and so some that are
banked. It never starts as long as others use up what accrues, which they do the better the less a
change costs. So if no gang is at the head, it is the job with the highest value per watt among the
waiting jobs that could not start even alone for lack of joules. With v and w the value and the
watts of its narrowest option, every option of another job that draws u watts loses ``v u / w``:
joules are kept for the head where they are worth more there. Nothing is kept while nothing is
banked, as a mere pace of the budget never banks.
"""

from typing import NamedTuple

import numpy as np

from ronda.formulations.objectives.outlook import Outlook
from ronda.formulations.objectives.remaining_work import work_ahead
from ronda.formulations.watts import least_node_w
from ronda.instances.base import Floats, Mask


class Reservation(NamedTuple):
    """A job's start on a pool `in_s` seconds from now, and its value per GPU that is free now.

    If the job waits for joules, its value `per_w` per watt counts in their place.
    """

    job: int
    pool: int
    in_s: float
    worth: float
    per_w: float = 0.0


def less_reserved(o: Outlook, values: Floats, head: Reservation | None) -> Floats:
    """Return the values less the loss that each option causes to the `head`, if any, shape (K,)."""
    if head is None:
        return values
    t = o.table
    if head.per_w:
        others = ~t.must_run[t.job] & (t.job != head.job)
        return np.where(others, values - head.per_w * t.extra_w, values)
    takes = _stays(o)[t.job] & ~t.must_run[t.job] & (t.pool == head.pool) & (t.job != head.job)
    beyond = np.maximum(0.0, 1.0 - head.in_s / np.maximum(o.left_s, head.in_s))
    return np.where(takes, values - head.worth * t.gpus * beyond, values)


def _stays(o: Outlook) -> Mask:
    return np.array([not state.job.preemptible for state in o.table.jobs], dtype=bool)


def reservation(o: Outlook, values: Floats) -> Reservation | None:
    """Return the reservation of a gang for GPUs, or else that of a job for joules, if any."""
    return _for_gpus(o, values) or _for_joules(o, values)


def _for_joules(o: Outlook, values: Floats) -> Reservation | None:
    """Return the reservation of the waiting job that lacks joules and has the most value per watt.

    Return None also if the idle cluster with the job's nodes awake draws all that accrues.
    """
    t, round_ = o.table, o.round
    if round_.energy_j is None or not round_.banked_j:
        return None
    topology, window_s = round_.cluster.topology, round_.window_s
    least_w, awake_w = least_node_w(topology), np.zeros(len(t.pools))
    np.maximum.at(awake_w, topology.node_pool, topology.awake_w - least_w)
    nodes = np.ceil(t.gpus / np.array([pool.gpus_per_node for pool in t.pools])[t.pool])
    spare_w = (round_.energy_j - round_.banked_j) / window_s - least_w.sum()
    spare_w = spare_w - nodes * awake_w[t.pool]
    lasts_s = np.minimum(work_ahead(round_)[t.job] / t.rate, window_s)
    able = t.extra_w <= spare_w + round_.banked_j / lasts_s
    lacks = np.array([state.allocation is None for state in t.jobs], dtype=bool)
    lacks[t.job[able]] = False
    waits = lacks[t.job] & (t.gpus == o.by_row(o.least_gpus)) & (values > 0) & (spare_w > 0)
    if not waits.any():
        return None
    per_w = np.divide(values, t.extra_w, out=np.zeros(len(t)), where=waits)
    k = int(per_w.argmax())
    return Reservation(int(t.job[k]), int(t.pool[k]), 0.0, 0.0, float(per_w[k]))


def _for_gpus(o: Outlook, values: Floats) -> Reservation | None:
    """Return the reservation of the most valuable gang without room next to jobs that must run.

    Return None if every job fits, if the pool is too small for the gang, or if the jobs that end
    leave room for others too. A gang counts with its narrowest options.
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
        return None  # the pool is too small today, or the jobs that end leave room for others
    worth = float(values[k]) / float(free[pool])
    return Reservation(int(t.job[k]), pool, float(ends_s[enough]), worth)
