"""What jobs make of shares of time on GPU types, each job on the GPUs that it asks for.

An equal share of J jobs is a J-th of every type's GPUs: a job of g GPUs has type t for the share
N_t / (J g) of the time, of all types together at most all of it.

`least` solves the programs of the policies that choose shares.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from ronda.formulations.objectives.outlook import weights
from ronda.formulations.objectives.remaining_work import expected_left, work_done
from ronda.formulations.options.application import requested_options
from ronda.instances.arrays import Floats, Mask
from ronda.instances.clock import Deadline, OutOfTimeError, checkpoint
from ronda.instances.job import JobState
from ronda.instances.round import Round
from ronda.solvers.exact.threads import SolverError, apart

GAP = 1e-3
"""Relative gap at which a program with whole numbers is solved."""

LIMIT = 1
"""SciPy's word for a search that ended with its time."""

MOST_ROWS = 10_000
"""Rows up to which numbers are whole: with more of them HiGHS works for long without a look at its
clock before it searches (28,674 rows 0.6 s, 114,690 rows 5 s, measured on one slow core)."""


@dataclass(frozen=True)
class TimeShares:
    """The jobs of a round that some pool suits, and (J, P) their rates as requested, 0 for none.

    ``gpus`` (J,) are what each holds while it runs, ``capacity`` (P,) the GPUs of each pool,
    ``weight`` (J,) the jobs' own, and ``done`` and ``left`` (J,) their work (`expected_left`).
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
        """Return those of a round; jobs are in order of submission."""
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
        """(J,) the rate of each job at an equal share."""
        shares = self.capacity / (len(self.jobs) * self.gpus[:, None])
        shares = np.where(self.rate > 0, shares, 0.0)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
        return np.asarray((self.rate * shares).sum(axis=1))

    @cached_property
    def age_s(self) -> Floats:
        """(J,) the seconds since submission."""
        submitted = np.array([state.job.submit_s for state in self.jobs], dtype=float)
        return np.maximum(self.round.now_s - submitted, 0.0)

    @cached_property
    def alone_s(self) -> Floats:
        """(J,) the seconds that the whole job takes at an equal share."""
        return np.asarray((self.done + self.left) / self.equal)


def least(
    cost: Floats,
    matrix: Any,
    upper: Floats,
    ends: tuple[Floats, Floats],
    whole: Mask,
    deadline: Deadline,
) -> Floats:
    """Return x of least cost with ``matrix x <= upper`` between its ends, whole where told.

    Beyond `MOST_ROWS` it is that of the relaxation, in which no number need be whole.
    `OutOfTimeError` if there is none in half of the time that is left; SolverError if HiGHS failed.
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
