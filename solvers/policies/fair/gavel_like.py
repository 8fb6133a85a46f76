"""Gavel-like: fair shares of time on GPU types by a linear program, realised by leases."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from ronda.instances.arrays import Floats
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.job import JobState
from ronda.solvers.contract import Capability
from ronda.solvers.policies.fair.leases import Book, Leasing
from ronda.solvers.policies.fair.time_shares import TimeShares, least

CLOSE = 1e-9
"""How near to its greatest the least is held while the rest of the GPUs is given away, relative."""

DIGITS = 6
"""Decimals of shares that count: equal jobs are in order of submission, not of rounding."""

HALVINGS = 10
"""Of the range in which the least finish-time fairness is looked for."""


@dataclass(frozen=True)
class _TimeSharing(Leasing):
    """Leases go to the jobs that are farthest behind their shares of time."""

    lease_s: Annotated[float, msgspec.Meta(gt=0)] = 360.0

    def ranked(self, of: TimeShares, book: Book, deadline: Deadline) -> list[tuple[JobState, int]]:
        """Return pairs of jobs and pools, by share over the share of time received."""
        shares = self.shares(of, deadline)
        received = np.zeros_like(shares)
        for j, state in enumerate(of.jobs):
            for pool, seconds in book.held_s[state.job.id].items():
                received[j, pool] = seconds
        received = (received + 1.0) / (of.age_s + self.lease_s)[:, None]
        pairs = [
            (-shares[j, p] / received[j, p], -of.rate[j, p], j, p)
            for j, p in np.argwhere(of.rate > 0).tolist()
        ]
        return [(of.jobs[j], p) for _, _, j, p in sorted(pairs)]

    @abstractmethod
    def shares(self, of: TimeShares, deadline: Deadline) -> Floats:
        """Return (J, P) the shares of time."""


@dataclass(frozen=True)
class GavelLike(_TimeSharing):
    """Give every job as much of its speed at an equal share as the worst-off one gets.

    Max-min fairness over GPU types, after Gavel (Narayanan et al., OSDI 2020) as far as its
    repository was seen: shares X of time by a linear program, realised in rounds by leases, in
    the order of share over share received. The program is ours::

        max z  with  sum_t rate_jt X_jt >= z w_j (rate at an equal share),
                     sum_t X_jt <= 1,  sum_j GPUs_j X_jt <= GPUs of t

    Jobs run on the GPUs that they asked for. What shares leave free is given away as well.

    Parameters
    ----------
    lease_s
        Seconds for which leases are given; 360 in its simulator.
    """

    name: ClassVar[str] = "gavel-like"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    def shares(self, of: TimeShares, deadline: Deadline) -> Floats:
        """Solve the program."""
        return fair_shares(of, of.weight * of.equal, deadline)[1]


@dataclass(frozen=True)
class GavelFtfLike(_TimeSharing):
    """Give shares of time so that the job treated worst by its finish time is treated best.

    The least rho for which every job can be done by ``rho`` times its time at an equal share of
    the cluster, counted from its submission (finish-time fairness, Themis, NSDI 2020); each step
    of the search is the program of `gavel-like`. Sizes are those of the estimates.

    Parameters
    ----------
    lease_s
        Seconds for which leases are given; 360 in Gavel's simulator.
    """

    name: ClassVar[str] = "gavel-ftf-like"
    capabilities: ClassVar[Capability] = GavelLike.capabilities | Capability.SIZES

    def shares(self, of: TimeShares, deadline: Deadline) -> Floats:
        """Search the least rho by halves."""
        low = float(((of.age_s + of.left / of.rate.max(axis=1)) / of.alone_s).max())
        high = 2.0 * low
        while not _are_done(of, high, deadline):
            low, high = high, 2.0 * high
        for _ in range(HALVINGS):
            checkpoint()
            middle = (low * high) ** 0.5
            low, high = (low, middle) if _are_done(of, middle, deadline) else (middle, high)
        return fair_shares(of, _need(of, high), deadline)[1]


def _need(of: TimeShares, rho: float) -> Floats:
    """Return (J,) the rates at which jobs are done by their time; infinite if it has passed."""
    left_s = rho * of.alone_s - of.age_s
    need = np.full(len(left_s), np.inf)
    np.divide(of.left, left_s, out=need, where=left_s > 0)
    return need


def _are_done(of: TimeShares, rho: float, deadline: Deadline) -> bool:
    """Return whether all jobs can be done by their time."""
    need = _need(of, rho)
    return bool(np.isfinite(need).all()) and fair_shares(of, need, deadline, fill=False)[0] >= 1


def fair_shares(
    of: TimeShares, need: Floats, deadline: Deadline, *, fill: bool = True
) -> tuple[float, Floats]:
    """Return the greatest part of (J,) needed rates that all jobs get, and (J, P) shares for it.

    To `fill` GPUs that the least cannot use, they are then those of the greatest mean of rates over
    those at an equal share. Needs count beside the best rates, the greatest as 1.
    """
    from scipy.sparse import csr_array

    jobs, pools = of.rate.shape
    pairs, at = np.argwhere(of.rate > 0), np.flatnonzero(of.rate > 0)
    j, p = pairs.T
    best = of.rate.max(axis=1)
    busy = need / best  # the part of its time that a job is to run
    most = busy.max() or 1.0
    k = np.arange(len(at))
    rows = np.concatenate([j, np.arange(jobs), jobs + j, 2 * jobs + p])
    columns = np.concatenate([k, np.full(jobs, len(at)), k, k])
    parts = of.rate.ravel()[at] / best[j], busy / most, np.ones(len(at)), of.gpus[j]
    entries = np.concatenate([-parts[0], *parts[1:]])
    matrix = csr_array((entries, (rows, columns)), shape=(2 * jobs + pools, len(at) + 1))
    limits = np.concatenate([np.zeros(jobs), np.ones(jobs), of.capacity])
    low, high = np.zeros(len(at) + 1), np.ones(len(at) + 1)
    some = np.zeros(len(low), dtype=bool)
    cost = np.append(np.zeros(len(at)), -1.0)
    found = least(cost, matrix, limits, (low, high), some, deadline)
    reached = float(found[-1] / most)
    if fill:
        low[-1] = found[-1] * (1 - CLOSE)
        speed = of.rate.ravel()[at] / of.equal[j]
        cost = np.append(-speed / speed.max(), 0.0)
        found = least(cost, matrix, limits, (low, high), some, deadline)
    shares = np.zeros(jobs * pools)
    shares[at] = np.clip(found[:-1], 0.0, 1.0).round(DIGITS)
    return reached, shares.reshape(jobs, pools)
