"""Ageing: a job's weight doubles as it grows older, so that nobody starves.

Serving small jobs first keeps a large one waiting as long as small ones go on to arrive. With ::

    weight_j 2^max(0, (age_j - least age) / tau_j - 1),  tau_j = patience x max(alone_j, mean alone)

a job that is much older than the newest one outweighs any number of later arrivals: it waits for
about ``tau_j (1 + log2(price ratio))`` at most, where the price ratio is what the small jobs that
arrive are worth more than it (sizes to the power of two, at most). Until a job is tau_j older than
the newest one nothing changes. The time alone of a job is its whole work at its best rate. Small
jobs do not age faster than those of mean size; long ones age with their own time, as serving
them early keeps all others waiting for as long.

The mean is over all jobs seen so far: those that are live are mostly the long ones, and a few
that take days would make all others wait for weeks. Sizes count as believed when a job is first
seen; jobs of unknown size do not count.
"""

from typing import Any

import msgspec
import numpy as np

from ronda.formulations.objectives.outlook import Outlook
from ronda.instances.arrays import Floats

PATIENCE = 3.0
"""Times alone after which a weight begins to grow: as chosen in docs/rolling_horizon.md."""

MOST_DOUBLINGS = 20.0
"""No weight grows beyond 2^20: solvers work with coefficients of limited range."""

ALONE_S = "alone_s"
"""Parameter of objectives that let jobs age: the mean time alone, in seconds."""

SEEN = "seen"
"""Key, in a plan's details, of the `Seen` jobs."""


class Seen(msgspec.Struct, frozen=True):
    """How many jobs of known size were submitted until a time, and their mean seconds alone."""

    jobs: int = 0
    alone_s: float = 0.0
    until_s: float | None = None


def seen(o: Outlook, details: dict[str, Any]) -> Seen:
    """Return the jobs seen until now, from the details of the plan before and the live jobs."""
    before = msgspec.convert(details.get(SEEN, {}), Seen)
    alone_s, new = _alone_s(o), ~o.guessed
    if before.until_s is not None:
        new &= o.submit_s > before.until_s
    found = alone_s[new & np.isfinite(alone_s)]
    jobs = before.jobs + len(found)
    total_s = before.jobs * before.alone_s + float(found.sum())
    return Seen(jobs, total_s / jobs if jobs else 0.0, o.round.now_s)


def aged_weight(o: Outlook, patience: float, alone_s: float | None = None) -> Floats:
    """Return the (J,) weights of jobs that have grown with their age (see the module).

    `alone_s` is the mean time alone; None: that of the live jobs.
    """
    if not len(o.submit_s):
        return o.weight
    older_s, own_s = o.submit_s.max() - o.submit_s, _alone_s(o)
    if alone_s is None:
        known = own_s[np.isfinite(own_s)]
        alone_s = float(known.mean()) if known.size else np.inf
    tau_s = patience * np.fmax(own_s, alone_s)
    if not (older_s > tau_s).any() or not tau_s.min() > 0:
        return o.weight
    doublings = np.clip(older_s / tau_s - 1.0, 0.0, MOST_DOUBLINGS)
    return np.asarray(o.weight * 2.0**doublings)


def _alone_s(o: Outlook) -> Floats:
    """Return (J,) each job's time alone, NaN for jobs without options."""
    return np.asarray((o.remaining + o.done) / o.most_rate)
