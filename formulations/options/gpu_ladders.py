"""The ladders of GPU counts that a job climbs under greedy elastic policies, at full clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ronda.formulations.options.application import LEAST_SPEED, Application, applications
from ronda.instances.base import Floats
from ronda.instances.clock import checkpoint
from ronda.instances.job import JobState
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.throughput import samples_per_s
from ronda.instances.round import Round


@dataclass(frozen=True, slots=True)
class Ladder:
    """The ascending GPU counts at which one job has a speed in one pool, as parallel columns.

    `rate` is the expected work per second at full clock on the fewest nodes. A job with its nodes
    to itself holds `gpus`, of which `asked` compute.
    """

    state: JobState
    pool: int
    gpus: tuple[int, ...]
    batch: tuple[float, ...]
    rate: tuple[float, ...]
    asked: tuple[int, ...]


class Homes:
    """The choice of a pool for each job: its current pool, or the pool with the most GPUs left.

    Policies made for one kind of GPU treat each pool as a cluster of its own. Every job reserves
    the fewest GPUs that it can run on.
    """

    def __init__(self, round: Round) -> None:
        self._left = [pool.gpus for pool in round.cluster.topology.pools]

    def choose(self, state: JobState, least: dict[int, int]) -> int | None:
        """Return the job's pool or None; `least` maps possible pools to the job's fewest GPUs."""
        held = state.allocation.option.pool if state.allocation else None
        if held not in least:
            held = max(least, key=lambda pool: (self._left[pool], -pool), default=None)
        if held is not None:
            self._left[held] -= least[held]
        return held


def movable(round: Round) -> list[JobState]:
    """Return the live jobs that a policy may decide about, in the order of submission."""
    free = [s for s in round.jobs if s.allocation is None or s.job.preemptible]
    return sorted(free, key=lambda state: state.job.submit_s)


def own_batch_ladders(round: Round, *, every: bool) -> list[Ladder]:
    """Return the ladders of all movable jobs at their own batch, in the order of submission.

    Jobs that no pool suits are left out. With `every`, a job may take any count within its limits,
    otherwise only those of `Application.sizes`. A rigid profile has only its requested count.
    """
    homes, found = Homes(round), []
    for state in movable(round):
        checkpoint()
        choices = {
            of.shape.index: ladder
            for of in applications(round, state.job)
            if (ladder := _own_batch(of, state, every)).gpus
        }
        home = homes.choose(state, {pool: ladder.gpus[0] for pool, ladder in choices.items()})
        if home is not None:
            found.append(choices[home])
    return found


def _own_batch(of: Application, state: JobState, every: bool) -> Ladder:
    batch = of.batch(state.job)
    low, high = of.limits(state.job)
    shaped = state.job.sizes or state.job.slices or state.job.one_node or state.job.exclusive
    every = every and not shaped
    sizes = range(low, min(high, of.shape.pool.gpus) + 1) if every else of.sizes(state.job)
    asked, speed = _speeds(of, sizes, batch)
    rate, gpus = (of.worth(state.noise, batch) * speed).tolist(), asked
    if state.job.exclusive:
        fastest = {of.shape.held(n): (n, r) for r, n in sorted(zip(rate, asked, strict=True))}
        gpus = tuple(sorted(fastest))
        asked, rate = (tuple(fastest[n][i] for n in gpus) for i in range(2))
    return Ladder(state, of.shape.index, gpus, (batch,) * len(gpus), tuple(rate), asked)


@lru_cache(maxsize=512)
def _speeds(of: Application, sizes: Sequence[int], batch: float) -> tuple[tuple[int, ...], Floats]:
    """Return the sizes that have a speed, and the samples per second (rigid: 1) at each."""
    shape, counts = of.shape, np.array(sizes, dtype=np.int64)
    nodes = -(-counts // shape.pool.gpus_per_node)
    gpu_type, far = shape.pool.gpu_type, Configuration(counts, nodes, batch, racks=shape.pool.racks)
    speed = samples_per_s(of.profile, gpu_type, far)
    if of.minds_racks:  # sizes that are too slow in several racks start in one
        near = samples_per_s(of.profile, gpu_type, far._replace(racks=1))
        near = np.where(counts <= shape.rack_gpus, near, 0.0)
        speed = np.where(speed < LEAST_SPEED * near, near, speed)
    some = (speed > 0) & np.array([of.has_nodes(n, batch) for n in counts.tolist()], dtype=bool)
    return tuple(counts[some].tolist()), speed[some]
