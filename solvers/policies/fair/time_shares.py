"""Shares of time on GPU types, and the jobs' rates with them on the GPUs that they ask for.

An equal share for J jobs is a J-th of every type's GPUs. A job of g GPUs has type t for the share
N_t / (J g) of the time. Its shares of all types add up to 1 at most.

`least` solves the programs of policies that choose shares.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ronda.formulations.objectives.outlook import weights
from ronda.formulations.objectives.remaining_work import expected_left, work_done
from ronda.formulations.options.application import requested_options
from ronda.instances.base import Floats, Mask
from ronda.instances.clock import Deadline, OutOfTimeError, checkpoint
from ronda.instances.job import JobState
from ronda.instances.round import Round
from ronda.solvers.exact.threads import SolverError, apart

GAP = 1e-3
"""The relative gap to which an integer program is solved."""

LIMIT = 1
"""SciPy's status of a search that ran out of time."""

MOST_ROWS = 10_000
"""The most rows of an integer program. With more rows HiGHS works for long before its search
without reading its clock (28,674 rows 0.6 s, 114,690 rows 5 s, measured on one slow core)."""


@dataclass(frozen=True)
class TimeShares:
    """The jobs of a round that fit some pool, and their rates as requested, shape (J, P).

    A rate is 0 on a pool that does not fit. ``gpus`` (J,) are the GPUs that each job holds while it
    runs, and ``capacity`` (P,) the GPUs of each pool. ``weight`` (J,) are the jobs' weights,
    ``done`` (J,) is their work so far and ``left`` (J,) their work to come (`expected_left`).
    """

    round: Round
    jobs: tuple[JobState, ...]
    rate: Floats
    gpus: Floats
    capacity: Floats
    weight: Floats
    done: Floats
    left: Floats

    @classmethod
    def of(cls, round: Round) -> "TimeShares":
        """Return the jobs of a round and their rates, in order of submission."""
        pools, order, rates = round.cluster.topology.pools, [], []
        for j in sorted(range(len(round.jobs)), key=lambda j: round.jobs[j].job.submit_s):
            checkpoint()
            own = np.zeros(len(pools))
            for option in requested_options(round, round.jobs[j]):
                own[option.pool] = option.rate
            if own.any():
                order.append(j)
                rates.append(own)
        rate, jobs = np.array(rates).reshape(len(order), len(pools)), [round.jobs[j] for j in order]
        best = np.full(len(round.jobs), np.nan)
        best[order] = rate.max(axis=1, initial=0.0)
        return cls(
            round=round,
            jobs=tuple(jobs),
            rate=rate,
            gpus=np.array([state.job.gpus for state in jobs], dtype=float),
            capacity=np.array([pool.gpus for pool in pools], dtype=float),
            weight=weights(jobs),
            done=work_done(round)[order],
            left=expected_left(round, best)[order],
        )

    @cached_property
    def equal(self) -> Floats:
        """The rate of each job at an equal share, shape (J,)."""
        shares = self.capacity / (len(self.jobs) * self.gpus[:, None])
        shares = np.where(self.rate > 0, shares, 0.0)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
        return np.asarray((self.rate * shares).sum(axis=1))

    @cached_property
    def age_s(self) -> Floats:
        """The seconds since each job's submission, shape (J,)."""
        submitted = np.array([state.job.submit_s for state in self.jobs], dtype=float)
        return np.maximum(self.round.now_s - submitted, 0.0)

    @cached_property
    def alone_s(self) -> Floats:
        """The seconds that each whole job takes at an equal share, shape (J,)."""
        return np.asarray((self.done + self.left) / self.equal)


def least(
    cost: Floats,
    matrix: Any,
    upper: Floats,
    ends: tuple[Floats, Floats],
    whole: Mask,
    deadline: Deadline,
) -> Floats:
    """Return x of least cost with ``matrix x <= upper``, between `ends`, integer where `whole`.

    With more than `MOST_ROWS` rows x solves the relaxation, without integers. Raises OutOfTimeError
    if half of the remaining time gives no solution, and SolverError if HiGHS failed.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

    limit_s = np.inf if deadline.limit_s is None else max(deadline.left() / 2, 1e-3)
    call = partial(
        milp,
        cost,
        constraints=LinearConstraint(matrix, -np.inf, upper),
        integrality=(whole & (len(upper) <= MOST_ROWS)).astype(int),
        bounds=Bounds(*ends),
        options={"mip_rel_gap": GAP, "time_limit": limit_s},
    )
    found = apart(call)
    if found.x is None:
        raise OutOfTimeError if found.status == LIMIT else SolverError(f"HiGHS: {found.message}")
    return np.asarray(found.x, dtype=float)
