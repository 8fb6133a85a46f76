"""Waiting priced so that nobody starves: a job's weight doubles as it grows older.

Serving small jobs first keeps a large one waiting as long as small ones go on to arrive. With ::

    weight_j 2^max(0, (age_j - least age) / tau - 1),   tau = patience x mean time alone

a job that is much older than the newest one outweighs any number of later arrivals: it waits for
about ``tau (1 + log2(price ratio))`` at most, where the price ratio is what the small jobs that
arrive are worth more than it (sizes to the power of two, at most). Until a job is tau older than
the newest one nothing changes. The time alone of a job is its whole work at its best rate, and
tau is the same for all jobs: if each had its own, small jobs would age faster than large ones.
"""

import numpy as np

from ronda.formulations.objectives.outlook import Outlook
from ronda.instances.arrays import Floats

PATIENCE = 100.0
"""Mean times alone after which a weight begins to grow: shorter queues never see it."""

MOST_DOUBLINGS = 20.0
"""No weight grows beyond 2^20: solvers work with coefficients of limited range."""


def aged_weight(o: Outlook, patience: float) -> Floats:
    """Return the (J,) weights of jobs that have grown with their age (see the module).

    `patience` is tau in units of the mean time alone; infinite: weights do not grow.
    """
    if not len(o.submit_s):
        return o.weight
    older_s = o.submit_s.max() - o.submit_s
    alone_s = (o.remaining + o.done) / o.most_rate
    known = alone_s[np.isfinite(alone_s)]
    tau_s = patience * float(known.mean()) if known.size else np.inf
    if not 0 < tau_s < older_s.max():
        return o.weight
    doublings = np.clip(older_s / tau_s - 1.0, 0.0, MOST_DOUBLINGS)
    return np.asarray(o.weight * 2.0**doublings)
