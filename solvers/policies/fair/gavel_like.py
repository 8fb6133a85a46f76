"""Gavel-like: fair shares of time on GPU types by a linear program, realised by leases."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from ronda.instances.base import Floats
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.job import JobState
from ronda.solvers.contract import Capability
from ronda.solvers.policies.fair.leases import Book, Leasing
from ronda.solvers.policies.fair.time_shares import TimeShares, least

CLOSE = 1e-9
"""The relative amount by which the maximin value may fall while the other GPUs are given away."""

DIGITS = 6
"""The decimals to which shares are rounded, so that equal jobs keep the order of submission."""

HALVINGS = 10
"""The number of halvings of the range in the search for the least finish-time fairness."""


@dataclass(frozen=True)
class _TimeSharing(Leasing):
    """A policy that gives leases to the jobs that are farthest behind their shares of time."""

    lease_s: Annotated[float, msgspec.Meta(gt=0)] = 360.0

    def ranked(self, of: TimeShares, book: Book, deadline: Deadline) -> list[tuple[JobState, int]]:
        """Return pairs (job, pool), sorted by the share of time divided by the share received."""
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
        """Return the shares of time, shape (J, P)."""


@dataclass(frozen=True)
class GavelLike(_TimeSharing):
    """Maximise the speed of the worst-off job relative to its speed at an equal share.

    The policy is max-min fair across GPU types, after Gavel (Narayanan et al., OSDI 2020) as far as
    its repository was seen. A linear program gives shares X of time. Leases realise them in rounds,
    sorted by share divided by share received. The program is ours::

        max z  with  sum_t rate_jt X_jt >= z w_j (rate at an equal share),
                     sum_t X_jt <= 1,  sum_j GPUs_j X_jt <= GPUs of t

    Jobs run on the GPUs that they asked for. GPUs that the shares leave free are given away as
    well.

    Parameters
    ----------
    lease_s
        Length of a lease in seconds; 360 in Gavel's simulator.
    """

    name: ClassVar[str] = "gavel-like"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    def shares(self, of: TimeShares, deadline: Deadline) -> Floats:
        """Solve the linear program of max-min fairness."""
        return fair_shares(of, of.weight * of.equal, deadline)[1]


@dataclass(frozen=True)
class GavelFtfLike(_TimeSharing):
    """Minimise the worst finish-time fairness of any job.

    The policy searches for the least ``rho`` such that every job can end within ``rho`` times its
    run time at an equal share of the cluster, counted from its submission (finish-time fairness,
    Themis, NSDI 2020). Each step of the search solves the program of `gavel-like`. Sizes come from
    the estimates.

    Parameters
    ----------
    lease_s
        Length of a lease in seconds; 360 in Gavel's simulator.
    """

    name: ClassVar[str] = "gavel-ftf-like"
    capabilities: ClassVar[Capability] = GavelLike.capabilities | Capability.SIZES

    def shares(self, of: TimeShares, deadline: Deadline) -> Floats:
        """Search for the least rho by bisection, and return its shares."""
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
    """Return the rates that end jobs in time for `rho`, shape (J,); infinite if it is too late."""
    left_s = rho * of.alone_s - of.age_s
    need = np.full(len(left_s), np.inf)
    np.divide(of.left, left_s, out=need, where=left_s > 0)
    return need


def _are_done(of: TimeShares, rho: float, deadline: Deadline) -> bool:
    """Return whether all jobs can end in time for `rho`."""
    need = _need(of, rho)
    return bool(np.isfinite(need).all()) and fair_shares(of, need, deadline, fill=False)[0] >= 1


def fair_shares(
    of: TimeShares, need: Floats, deadline: Deadline, *, fill: bool = True
) -> tuple[float, Floats]:
    """Return the greatest part of the rates `need` (J,) that all jobs can get, and shares (J, P).

    With `fill`, GPUs that do not raise this part go where they give the greatest mean of rates
    relative to an equal share. Rates in the program are relative to each job's best rate, and the
    greatest need counts as 1.
    """
    from scipy.sparse import csr_array

    jobs, pools = of.rate.shape
    pairs, at = np.argwhere(of.rate > 0), np.flatnonzero(of.rate > 0)
    j, p = pairs.T
    best = of.rate.max(axis=1)
    busy = need / best  # the part of the time that a job needs at its best rate
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
