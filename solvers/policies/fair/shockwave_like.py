"""Shockwave-like: a market for the rounds of a window, with finish-time fairness in view."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ronda.instances.base import Floats, Ints
from ronda.instances.clock import Deadline
from ronda.instances.job import JobState
from ronda.solvers.contract import Capability
from ronda.solvers.policies.fair.leases import Book, Leasing
from ronda.solvers.policies.fair.time_shares import TimeShares, least

POINTS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
"""The values of progress between which the logarithm is taken as linear. ``ORIGIN`` stands for 0,
which has no logarithm. They are `logapx_bases` and `logapx_origin` in Shockwave's repository."""

ORIGIN = 1e-6

LOGS = np.log(np.maximum(POINTS, ORIGIN))

UNFAIR = 10.0
"""The cost of a job's lateness for a fair finish, per fair time, in units of the logarithm."""


ROUND_S, ROUNDS = 120.0, 20
"""The length of a round in seconds, as in Shockwave's simulator, and the rounds of a window."""

MAKESPAN = 0.1
"""The cost of the makespan, relative to the time of all work on all GPUs, as in its repository."""


@dataclass(frozen=True)
class ShockwaveLike(Leasing):
    """Give jobs rounds of the next window so that the product of their progress is maximal.

    The policy follows Shockwave (Zheng et al., NSDI 2023) as far as its repository was seen. A MILP
    maximises the Nash welfare of progress in a window of 20 rounds, minus a share of the makespan,
    under finish-time fairness. Nash welfare is the sum of logarithms, taken as linear in 5 pieces.
    Four parts are ours. The program decides how many rounds a job gets, not which ones. A job that
    cannot end in fair time pays for its lateness, instead of a second program. Sizes come from the
    estimates, without predicted changes of batches. There may be several GPU types, and a job
    counts with its best one. With more than about 1,400 jobs the numbers of rounds are those of the
    relaxation, rounded. Jobs that won the largest part of the rounds that they can use run first,
    with the shortest job first in a tie. Jobs run on the GPUs that they asked for.
    """

    lease_s = ROUND_S

    name: ClassVar[str] = "shockwave-like"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS | Capability.SIZES

    def ranked(self, of: TimeShares, book: Book, deadline: Deadline) -> list[tuple[JobState, int]]:
        """Return pairs (job, pool), sorted by the part of its usable rounds that the job won.

        Ties go to the job with fewer usable rounds, then to running jobs, on their own pools first.
        """
        most = most_rounds(of)
        part = won_rounds(of, deadline) / most
        keys = []
        for j, p in np.argwhere(of.rate > 0).tolist():
            held = of.jobs[j].allocation
            here = held is not None and held.option.pool == p
            keys.append((-part[j], most[j], held is None, j, not here, -of.rate[j, p], p))
        return [(of.jobs[j], p) for *_, j, _, _, p in sorted(keys)]


def most_rounds(of: TimeShares) -> Floats:
    """Return the number of rounds that each job can use at its best rate, shape (J,)."""
    rounds = np.ceil(of.left / of.rate.max(axis=1) / ROUND_S)
    return np.asarray(np.minimum(rounds, ROUNDS))


def won_rounds(of: TimeShares, deadline: Deadline) -> Floats:
    """Return the number of rounds of the window that each job gets, shape (J,).

    The variables of J jobs are the rounds n, the increases v of the logarithms and the lateness s.
    The makespan m is in units of the time of all work on all GPUs. The rows come from `_rows`.
    """
    jobs = len(of.jobs)
    most = most_rounds(of)
    now = np.interp(of.done / (of.done + of.left), POINTS, LOGS)
    matrix, upper = _rows(of, now)
    cost = np.concatenate([np.zeros(jobs), -of.weight, UNFAIR * of.weight, [MAKESPAN]])
    none, every = np.zeros(jobs), np.full(jobs, np.inf)
    ends = (
        np.concatenate([none, -every, none, [0.0]]),
        np.concatenate([most, -now, every, [np.inf]]),
    )
    found = least(cost, matrix, upper, ends, np.arange(len(cost)) < jobs, deadline)
    return np.asarray(np.rint(found[:jobs]))


def _rows(of: TimeShares, now: Floats) -> tuple[Any, Floats]:
    """Return the matrix and upper limits of the market; `now` (J,) are the current logarithms.

    The rounds need no more GPUs than there are. ``now_j + v_j`` is below each chord of
    ``log(progress)``. With lateness s_j a job ends in its fair time if it gets its equal share
    after the window. m is at least the work left after the window, of each job and of all jobs.
    """
    from scipy.sparse import csr_array

    jobs, best = len(of.jobs), of.rate.max(axis=1)
    step = best * ROUND_S  # work of a round
    total = of.done + of.left
    n = np.arange(jobs)  # columns: rounds, then logarithms, lateness, makespan
    v, s, m = jobs + n, 2 * jobs + n, np.full(jobs, 3 * jobs)
    one = np.ones(jobs)
    upper: list[Floats] = []
    entries: list[tuple[Ints, Ints, Floats]] = []

    def add(most: Floats, *columns: tuple[Ints, Floats]) -> None:
        """Add a row per entry of the columns, or one row with all of their entries."""
        row = sum(map(len, upper)) + np.arange(len(most))
        entries.extend((np.broadcast_to(row, c.shape), c, values) for c, values in columns)
        upper.append(most)

    add(np.array([ROUNDS * of.capacity.sum()]), (n, of.gpus))
    for slope, a, log in zip(np.diff(LOGS) / np.diff(POINTS), POINTS, LOGS, strict=False):
        add(log + slope * (of.done / total - a) - now, (n, -slope * step / total), (v, one))
    window_s = ROUNDS * ROUND_S
    fair_s = of.alone_s  # a finish-time fairness of 1 at most
    after = of.left / of.equal
    slack = (fair_s - of.age_s - window_s - after) / fair_s
    add(slack, (n, -step / of.equal / fair_s), (s, -one))
    all_s = float((of.gpus * of.left / best).sum() / of.capacity.sum())
    add(-of.left / best, (n, -ROUND_S * one), (m, -all_s * one))
    area = ROUND_S * of.gpus / of.capacity.sum()
    add(np.array([-all_s]), (n, -area), (m[:1], np.array([-all_s])))
    rows, columns, values = map(np.concatenate, zip(*entries, strict=True))
    most = np.concatenate(upper)
    return csr_array((values, (rows, columns)), shape=(len(most), 3 * jobs + 1)), most
