"""The GPU counts that a job may climb, at full clock: what greedy elastic policies step through."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ronda.formulations.models.efficiency import worth
from ronda.formulations.models.throughput import model_of, samples_per_s
from ronda.formulations.options.pools import PoolShape, pool_shapes
from ronda.formulations.options.requested import suits
from ronda.formulations.remembered import remembered
from ronda.instances.arrays import Floats
from ronda.instances.job import Job, JobState
from ronda.instances.profile import NoiseScale, Profile, Rigid
from ronda.instances.round import Round

Speeds = tuple[tuple[int, ...], Floats, bool]
"""GPU counts, samples per second (rigid: 1) at each of them, and whether the profile is rigid."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """GPU counts of one job in one pool; parallel columns, ascending in GPUs.

    Attributes
    ----------
    state
        The job.
    pool
        Index of the pool.
    gpus
        GPU counts at which the job has a speed.
    batch
        Global batch size at each of them.
    rate
        Expected work per second at each of them, at full clock on the fewest nodes.
    """

    state: JobState
    pool: int
    gpus: tuple[int, ...]
    batch: tuple[float, ...]
    rate: tuple[float, ...]


class Homes:
    """Which pool each job belongs to: that it runs in, or the one with most GPUs not yet promised.

    Policies made for one kind of GPU are told which pool a job is in, so that each pool is such a
    cluster of its own. Every job is promised the fewest GPUs that it can run on.
    """

    def __init__(self, round: Round) -> None:
        self._left = [pool.gpus for pool in round.cluster.topology.pools]

    def choose(self, state: JobState, least: dict[int, int]) -> int | None:
        """Return the job's pool, or None; `least` holds the fewest GPUs in each possible pool."""
        held = state.allocation.option.pool if state.allocation else None
        if held not in least:
            held = max(least, key=lambda pool: (self._left[pool], -pool), default=None)
        if held is not None:
            self._left[held] -= least[held]
        return held


def movable(round: Round) -> list[JobState]:
    """Return the live jobs that a policy may decide about, in order of submission."""
    free = [s for s in round.jobs if s.allocation is None or s.job.preemptible]
    return sorted(free, key=lambda state: state.job.submit_s)


def own_batch_ladders(round: Round, *, every: bool) -> list[Ladder]:
    """Return the ladders of all movable jobs at their own batch, in order of submission.

    Parameters
    ----------
    round
        The snapshot.
    every
        Whether a job may take any count within its limits; else powers of two (the pool's ladder),
        or, where none of these lies within the limits, what the user asked for. A rigid profile
        has its requested count only.

    Returns
    -------
    list of Ladder
        Jobs that no pool suits are left out.
    """
    homes, shapes, found = Homes(round), pool_shapes(round.cluster), []
    speeds: dict[Hashable, Speeds] = {}
    for state in movable(round):
        profile = round.profiles[state.job.profile]
        choices = {
            shape.index: ladder
            for shape in shapes
            if suits(state.job, profile, shape.pool)
            and (ladder := _own_batch(profile, shape, state, every, speeds)).gpus
        }
        home = homes.choose(state, {pool: of.gpus[0] for pool, of in choices.items()})
        if home is not None:
            found.append(choices[home])
    return found


def _own_batch(
    profile: Profile,
    shape: PoolShape,
    state: JobState,
    every: bool,
    speeds: dict[Hashable, Speeds],
) -> Ladder:
    """Return a job's ladder in one pool; `speeds` holds those of jobs of its kind in this round."""
    job = state.job
    batch = job.batch or profile.base_batch
    kind = (job.profile, shape.index, job.min_gpus, job.max_gpus, job.gpus, batch)
    known = speeds.get(kind)
    if known is None:
        known = speeds[kind] = _speeds(profile, shape, job, batch, every)
    gpus, speed, rigid = known
    if state.noise is not None and not rigid:
        speed = _worth(state.noise, batch, profile.base_batch) * speed
    return Ladder(state, shape.index, gpus, (batch,) * len(gpus), tuple(speed.tolist()))


def _worth(noise: NoiseScale, batch: float, base_batch: float) -> float:
    """Return the statistical efficiency of a batch."""
    return remembered(
        noise,
        ("efficiency", batch, base_batch),
        lambda: worth(noise, batch, base_batch),
    )


def _speeds(profile: Profile, shape: PoolShape, job: Job, batch: float, every: bool) -> Speeds:
    """Return the counts that a job may climb, their speeds, and whether its profile is rigid."""
    rigid = isinstance(model_of(profile, shape.pool.gpu_type), Rigid)
    low = job.gpus if rigid else job.min_gpus or job.gpus
    high = min(job.gpus if rigid else job.max_gpus or job.gpus, shape.pool.gpus)
    limits = (low, high, job.gpus)
    key = ("ladder", shape.index, shape.pool, shape.node_gpus, *limits, batch, every)
    make = partial(_with_a_speed, profile, shape, limits, batch, every)
    return (*remembered(profile, key, make), rigid)


def _with_a_speed(
    profile: Profile, shape: PoolShape, limits: tuple[int, int, int], batch: float, every: bool
) -> tuple[tuple[int, ...], Floats]:
    """Return the counts with a speed, and samples per second (rigid: 1) at each of them."""
    low, high, asked = limits
    counts = np.arange(low, high + 1)
    if not every:
        counts = counts[np.isin(counts, shape.ladder)]
        if not len(counts) and asked <= high:
            counts = np.array([asked])
    way = (shape.pool.gpu_type, counts, shape.nodes(counts), batch, 1.0, shape.pool.racks)
    speed = samples_per_s(profile, *way)
    some = speed > 0
    return tuple(counts[some].tolist()), speed[some]
