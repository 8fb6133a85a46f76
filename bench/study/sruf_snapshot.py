"""ONES's score of a schedule, and its exact counterpart: a separable multiple-choice knapsack.

*Smallest remaining utilisation first* (Bian et al., SC'21; authors' artifact, src/scheduler.py)
scores a schedule by the GPU-seconds to come of the jobs that hold GPUs; less is better::

    score = sum over jobs with c_j > 0 of  w[j, c_j],     w[j, c] = c · left_j / X_j(c)
    left_j = Y_j (1/rho_j - 1)

with Y_j samples done, rho_j the share of the work that they are
(`ronda.formulations.prediction.progress`), X_j(c) samples per second on c GPUs. Idle GPUs would
score best, so using as many as the limits R_j allow belongs to the problem (the artifact's *pad*
sees to it)::

    min  sum_jc w[j, c] x[j, c]
    s.t. sum_c x[j, c] <= 1,   c = 1..R_j                    for each job j
         sum_jc c x[j, c] = min(C - new, sum_j R_j)

New jobs have no prediction; each is given one GPU beforehand and scores 0. That search over
genomes has this exact form is our reading, not the paper's: without placement and migration
nothing couples jobs but the number of GPUs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, NDArray

from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SrufSnapshot:
    """One decision of ONES without placement.

    Attributes
    ----------
    weights
        (J, Rmax) GPU-seconds to come of each job on 1..Rmax GPUs; inf above its limit.
    capacity
        GPUs for these jobs; those that new jobs hold are taken off already.
    """

    weights: Floats
    capacity: int

    def __post_init__(self) -> None:
        """Refuse what is no such problem."""
        table = np.asarray(self.weights, dtype=float)
        if table.ndim != 2 or not table.shape[1]:
            raise InputError("sruf: weights", f"shape {table.shape}", "(jobs, largest limit)")
        allowed = table < np.inf
        if (np.isnan(table) | (table < 0)).any():
            row, column = np.argwhere(np.isnan(table) | (table < 0))[0].tolist()
            place = f"sruf: weights[{row}, {column}]"
            raise InputError(place, f"{table[row, column]:g}", "0 GPU-seconds or more")
        broken = np.flatnonzero((allowed[:, 1:] & ~allowed[:, :-1]).any(axis=1))
        if len(broken):
            place = f"sruf: weights[{broken[0]}]"
            raise InputError(place, "a gap", "every GPU count up to the limit, inf above it")
        if self.capacity < 0:
            raise InputError("sruf: capacity", f"{self.capacity}", "0 GPUs or more")
        object.__setattr__(self, "weights", table)

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return len(self.weights)

    @property
    def limits(self) -> Counts:
        """(J,) R_j: the most GPUs of each job."""
        return np.asarray((self.weights < np.inf).sum(axis=1))

    @property
    def used(self) -> int:
        """GPUs that every schedule uses: all, or as many as the limits allow."""
        return min(self.capacity, int(self.limits.sum()))

    def score(self, gpus: ArrayLike) -> Floats:
        """Return the score of allocations: (), or (P,) for (P, J); inf beyond a limit.

        Parameters
        ----------
        gpus
            (J,) or (P, J) GPUs of each job, 0 for none. That all `used` GPUs are used is not
            looked at: see `full`.
        """
        counts = self._counts(gpus)
        columns = np.clip(counts, 1, self.weights.shape[1]) - 1
        each = self.weights[np.arange(self.jobs), columns]
        each = np.where(counts > self.weights.shape[1], np.inf, each)
        return np.asarray(np.where(counts > 0, each, 0.0).sum(axis=-1))

    def full(self, gpus: ArrayLike) -> NDArray[np.bool_]:
        """Tell whether allocations keep the limits and use exactly the GPUs that they should."""
        counts = self._counts(gpus)
        within = ((counts >= 0) & (counts <= self.limits)).all(axis=-1)
        return np.asarray(within & (counts.sum(axis=-1) == self.used))

    def _counts(self, gpus: ArrayLike) -> Counts:
        counts = np.asarray(gpus, dtype=np.int64)
        if counts.ndim not in (1, 2) or counts.shape[-1] != self.jobs:
            raise InputError("sruf: gpus", f"shape {counts.shape}", f"(…, {self.jobs})")
        return counts


def snapshot(left: ArrayLike, speed: ArrayLike, capacity: int, *, new: int = 0) -> SrufSnapshot:
    """Return the problem of a scheduler's state.

    Parameters
    ----------
    left
        (J,) samples to come: Y (1/rho - 1), with rho sampled, or averaged
        (`BetaProgress.work_left`).
    speed
        (J, Rmax) samples per second on 1..Rmax GPUs; 0 above the job's limit.
    capacity
        GPUs of the cluster.
    new
        Jobs without a prediction, each of which holds one GPU.

    Raises
    ------
    InputError
        For shapes that do not fit, negative numbers, or more new jobs than GPUs.
    """
    work, rate = np.asarray(left, dtype=float), np.asarray(speed, dtype=float)
    if rate.ndim != 2 or work.shape != rate.shape[:1]:
        found = f"left of shape {work.shape}, speed of shape {rate.shape}"
        raise InputError("sruf", found, "(J,) and (J, Rmax)")
    if not (np.isfinite(work) & (work >= 0)).all():
        raise InputError("sruf: left", "a number that is negative or not finite", "0 or more")
    if not (np.isfinite(rate) & (rate >= 0)).all():
        raise InputError("sruf: speed", "a number that is negative or not finite", "0 or more")
    if not 0 <= new <= capacity:
        raise InputError("sruf: new", f"{new} jobs", f"0 to {capacity}, the GPUs")
    gpu_samples = np.arange(1, rate.shape[1] + 1) * work[:, None]
    weights = np.full(rate.shape, np.inf)
    np.divide(gpu_samples, rate, out=weights, where=rate > 0)
    return SrufSnapshot(weights, capacity - new)


def optimum(problem: SrufSnapshot) -> Counts:
    """Return (J,) GPUs of a schedule of least score, by dynamic programming.

    ``f_j[u] = min_c f_{j-1}[u - c] + w[j, c]`` over c = 0..R_j is the least score of the first j
    jobs on exactly u GPUs: O(J C R) time, all u of a job at once, and O(J C) memory. Of equal
    scores the later job gets fewer GPUs.
    """
    least = _layers(problem)
    gpus = np.zeros(problem.jobs, dtype=np.int64)
    left, limits = problem.used, problem.limits
    for j in range(problem.jobs - 1, -1, -1):
        most = min(int(limits[j]), left)
        each = least[j, left - most : left + 1][::-1].copy()
        each[1:] += problem.weights[j, :most]
        gpus[j] = int(np.argmin(each))
        left -= int(gpus[j])
    return gpus


def _layers(problem: SrufSnapshot) -> Floats:
    """Return (J + 1, used + 1) the least score of the first j jobs on u GPUs, inf if impossible."""
    size, widest = problem.used + 1, problem.weights.shape[1]
    # Room for u < 0 before every layer, so that one strided view holds f[u - c] for all c.
    room = np.full((problem.jobs + 1, widest + size), np.inf)
    room[0, widest] = 0.0
    shifted = as_strided(
        room[:, widest - 1 :],
        (len(room), widest, size),
        (room.strides[0], -room.strides[1], room.strides[1]),
        writeable=False,
    )
    costs = np.empty((widest + 1, size))
    for j, most in enumerate(problem.limits.tolist()):
        np.add(shifted[j, :most], problem.weights[j, :most, None], out=costs[:most])
        costs[most] = room[j, widest:]
        np.minimum.reduce(costs[: most + 1], axis=0, out=room[j + 1, widest:])
    return room[:, widest:]


def shortest_first(problem: SrufSnapshot) -> Counts:
    """Return (J,) GPUs by SRPT: jobs by remaining time on one GPU get their limits in turn.

    What *pad* of the artifact makes of an empty schedule.
    """
    gpus = np.zeros(problem.jobs, dtype=np.int64)
    order = np.argsort(problem.weights[:, 0], kind="stable")
    before = np.concatenate([[0], np.cumsum(problem.limits[order])[:-1]])
    gpus[order] = np.clip(problem.used - before, 0, problem.limits[order])
    return gpus


SIZES = ((64, 40), (64, 80), (256, 300))
"""(GPUs, jobs) that searches are compared on."""

LIMITS = (1, 2, 4, 8, 16)


def generate(gpus: int, jobs: int, seed: int) -> SrufSnapshot:
    """Return a synthetic snapshot; the same arguments, the same problem.

    Speed-up c^p with p from U(0.55, 0.95); samples per second on one GPU and samples done
    lognormal (median 1; sigma of the logarithm 0.5 and 1.5); progress from Beta(3, 3); limits from
    1, 2, 4, 8 and 16, as ONES doubles them. The family is that of an experiment of ours whose
    sigmas were not written down. They are chosen so that filling by SRPT ends as far from the
    optimum as it did there (32 %, 46 % and 46 % at `SIZES`; here 48 %, 36 % and 49 % on seeds
    0-19).
    """
    if gpus < 1 or jobs < 1:
        raise InputError("sruf: size", f"{gpus} GPUs, {jobs} jobs", "at least 1 of each")
    rng = np.random.default_rng([seed, gpus, jobs])
    power = rng.uniform(0.55, 0.95, (jobs, 1))
    done = rng.lognormal(0.0, 1.5, jobs)
    rho = rng.beta(3.0, 3.0, jobs)
    limits = rng.choice(LIMITS, (jobs, 1))
    alone = rng.lognormal(0.0, 0.5, (jobs, 1))
    counts = np.arange(1, max(LIMITS) + 1)
    speed = np.where(counts <= limits, alone * counts**power, 0.0)
    return snapshot(done * (1.0 / rho - 1.0), speed, gpus)
