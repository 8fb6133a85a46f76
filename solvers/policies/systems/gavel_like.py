"""Gavel-like: fair shares of time on GPU types by a linear program, realised by leases."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from ronda.formulations.clock import Deadline, checkpoint
from ronda.instances.arrays import Floats
from ronda.instances.job import JobState
from ronda.solvers.contract import Capability
from ronda.solvers.policies.systems.leases import Book, Leasing
from ronda.solvers.policies.systems.time_shares import TimeShares, least

SPEED = 1e-3
"""What the mean of all jobs counts against the least: GPUs that the least cannot use are used."""

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
        high, best = 2.0 * low, None
        while best is None:
            best = _by(of, high, deadline)
            low, high = (low, high) if best is not None else (high, 2.0 * high)
        for _ in range(HALVINGS):
            checkpoint()
            middle = (low * high) ** 0.5
            found = _by(of, middle, deadline)
            if found is None:
                low = middle
            else:
                high, best = middle, found
        return best


def _by(of: TimeShares, rho: float, deadline: Deadline) -> Floats | None:
    """Return shares with which all jobs are done by their time; None if there are none."""
    left_s = rho * of.alone_s - of.age_s
    if (left_s <= 0).any():
        return None
    reached, shares = fair_shares(of, of.left / left_s, deadline)
    return shares if reached >= 1 else None


def fair_shares(of: TimeShares, need: Floats, deadline: Deadline) -> tuple[float, Floats]:
    """Return the greatest part of (J,) needed rates that all jobs get, and (J, P) shares for it."""
    from scipy.sparse import csr_array

    jobs, pools = of.rate.shape
    pairs, at = np.argwhere(of.rate > 0), np.flatnonzero(of.rate > 0)
    j, p = pairs.T
    speed = of.rate.ravel()[at] / need[j]
    k = np.arange(len(at))
    rows = np.concatenate([j, np.arange(jobs), jobs + j, 2 * jobs + p])
    columns = np.concatenate([k, np.full(jobs, len(at)), k, k])
    entries = np.concatenate([-speed, np.ones(jobs), np.ones(len(at)), of.gpus[j]])
    matrix = csr_array((entries, (rows, columns)), shape=(2 * jobs + pools, len(at) + 1))
    limits = np.concatenate([np.zeros(jobs), np.ones(jobs), of.capacity])
    cost = np.append(-SPEED * speed / jobs, -1.0)
    ends = np.zeros(len(cost)), np.append(np.ones(len(at)), np.inf)
    found = least(cost, matrix, limits, ends, np.zeros(len(cost), dtype=bool), deadline)
    shares = np.zeros(jobs * pools)
    shares[at] = np.clip(found[:-1], 0.0, 1.0)
    return float(found[-1]), shares.reshape(jobs, pools)
