"""Shockwave-like: a market for the rounds of a window, with finish-time fairness in view."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ronda.instances.arrays import Floats, Ints
from ronda.instances.clock import Deadline
from ronda.instances.job import JobState
from ronda.solvers.contract import Capability
from ronda.solvers.policies.fair.leases import Book, Leasing
from ronda.solvers.policies.fair.time_shares import TimeShares, least

POINTS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
"""Progress between which the logarithm is taken as linear, and ``ORIGIN``, whose logarithm stands
for that of 0: `logapx_bases` and `logapx_origin` of its repository."""

ORIGIN = 1e-6

LOGS = np.log(np.maximum(POINTS, ORIGIN))

UNFAIR = 10.0
"""What a time alone costs by which a job is late for a fair finish, against one unit of the log."""


ROUND_S, ROUNDS = 120.0, 20
"""Length of a round, as in its simulator, and rounds of the window."""

MAKESPAN = 0.1
"""What the makespan costs, over the time that all work needs on all GPUs, as in its repository."""


@dataclass(frozen=True)
class ShockwaveLike(Leasing):
    """Give jobs rounds of the next window so that the product of their progress is greatest.

    After Shockwave (Zheng et al., NSDI 2023) as far as its repository was seen: Nash welfare (the
    sum of logarithms in 6 pieces) of progress over a window of 20 rounds, less a share of the
    makespan, under finish-time fairness, by a MILP. Ours are: how many rounds a job gets instead of
    which; that a job which cannot be fair costs what it is late by, instead of a second program;
    that sizes are those of the estimates, without foretold changes of batches; and GPU types, as
    the original knows one: a job counts with its best. Of more than some 1,400 jobs the rounds are
    those of the relaxation, to the nearest. Jobs that won most of the rounds that they can use go
    first, the shortest of them, and run on the GPUs that they asked for.
    """

    lease_s = ROUND_S

    name: ClassVar[str] = "shockwave-like"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS | Capability.SIZES

    def ranked(self, of: TimeShares, book: Book, deadline: Deadline) -> list[tuple[JobState, int]]:
        """Return pairs of jobs and pools by the part of the rounds that it could use that each won.

        Ties go to who needs fewer rounds, then to what runs, on its own pool first.
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
    """Return (J,) how many rounds of the window each job can use at its best rate."""
    rounds = np.ceil(of.left / of.rate.max(axis=1) / ROUND_S)
    return np.asarray(np.minimum(rounds, ROUNDS))


def won_rounds(of: TimeShares, deadline: Deadline) -> Floats:
    """Return (J,) how many rounds of the window each job gets.

    Variables are, for J jobs, the rounds n, what they add to the logarithms v, the lateness s, and
    the makespan m in times that all work needs on all GPUs; rows are those of `_rows`.
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
    """Return the matrix and upper limits of the market; `now` (J,) are the logarithms of today.

    GPU-rounds suffice; ``now_j + v_j`` is below each chord of ``log(progress)``; with s_j the job
    is done in its fair time if it has its equal share after the window; m is no less than what is
    left of each job, and of all, after the window.
    """
    from scipy.sparse import csr_array

    jobs, best = len(of.jobs), of.rate.max(axis=1)
    step = best * ROUND_S  # work of a round
    total = of.done + of.left
    n = np.arange(jobs)  # columns of rounds; then of logarithms, of lateness, of the makespan
    v, s, m = jobs + n, 2 * jobs + n, np.full(jobs, 3 * jobs)
    one = np.ones(jobs)
    upper: list[Floats] = []
    entries: list[tuple[Ints, Ints, Floats]] = []

    def add(most: Floats, *columns: tuple[Ints, Floats]) -> None:
        """Add rows, each with its own entry of all columns, or one row with all their entries."""
        row = sum(map(len, upper)) + np.arange(len(most))
        entries.extend((np.broadcast_to(row, c.shape), c, values) for c, values in columns)
        upper.append(most)

    add(np.array([ROUNDS * of.capacity.sum()]), (n, of.gpus))
    for slope, a, log in zip(np.diff(LOGS) / np.diff(POINTS), POINTS, LOGS, strict=False):
        add(log + slope * (of.done / total - a) - now, (n, -slope * step / total), (v, one))
    window_s = ROUNDS * ROUND_S
    fair_s = of.alone_s  # finish-time fairness up to 1
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
