"""What every job of an instance needs at the very least, whatever schedules it; reads the truth.

In each stage of a job's gradient noise, of all ways to run it (`ronda.formulations.bounds.modes`)

* the fastest gives the fewest seconds per unit of work,
* the most frugal one the fewest GPU-seconds per unit of work,
* and another one perhaps the fewest joules.

The three are taken from different ways to run, and changing between stages costs nothing: no
schedule does better in any of them. Before its first progress a job also holds GPUs for its
``start_s``; later restarts can be avoided and do not count.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.bounds.modes import Kind, Modes, kind_of, modes
from ronda.formulations.watts.nodes import least_node_w
from ronda.instances.arrays import Floats
from ronda.instances.cluster import Topology
from ronda.instances.instance import Instance


@dataclass(frozen=True, slots=True)
class Alike:
    """Jobs of one kind.

    Attributes
    ----------
    rows
        (j,) their indices in the instance.
    share
        (j, S) the work that each does in each stage.
    modes
        The ways to run them.
    extra_w
        (N,) watts of each way beyond idling in the cheapest way (see `Needs.joules`).
    group
        The group of pools that they run in.
    """

    rows: NDArray[np.int64]
    share: Floats
    modes: Modes
    extra_w: Floats
    group: int


@dataclass(frozen=True, slots=True)
class Needs:
    """Least needs of all jobs of an instance, as parallel arrays in the instance's order.

    Attributes
    ----------
    submit_s
        (J,) submission.
    start_s
        (J,) pause before the first progress.
    seconds
        (J,) holding GPUs, that pause included.
    gpu_s
        (J,) GPU-seconds, that pause included.
    joules
        (J,) energy that a schedule uses for the job beyond that of a cluster which idles in the
        cheapest way, every node awake or asleep for ever.
    group
        (J,) index of the group of pools that it may run in. Groups share no job and no GPU.
    group_gpus
        (G,) GPUs of each group.
    idle_w
        Watts of the cluster that idles in the cheapest way.
    kinds
        The jobs by kind.
    """

    submit_s: Floats
    start_s: Floats
    seconds: Floats
    gpu_s: Floats
    joules: Floats
    group: NDArray[np.int64]
    group_gpus: Floats
    idle_w: float
    kinds: tuple[Alike, ...]

    @property
    def all_draw_power(self) -> bool:
        """Whether no way to run any job draws less than idling does."""
        return all((alike.extra_w >= 0).all() for alike in self.kinds)


class Idle(NamedTuple):
    """Idling in the cheapest way.

    Attributes
    ----------
    floor_w
        Watts of all nodes, each awake or asleep, whichever draws less.
    held_w
        (P,) least watts that a GPU of a pool adds to that when a job holds it without progress.
    """

    floor_w: float
    held_w: Floats


def needs(instance: Instance, *, may_sleep: bool = True) -> Needs:
    """Return what every job needs at least.

    Parameters
    ----------
    instance
        All its jobs must have a truth.
    may_sleep
        Whether a schedule may put nodes to sleep; False gives higher needs of energy.

    Raises
    ------
    InputError
        If a job has no truth, or nothing in the cluster can run it.
    """
    jobs, topology = instance.jobs, instance.cluster.topology
    idle = cheapest_idling(topology, may_sleep=may_sleep)
    members: dict[Kind, list[int]] = {}
    for j, job in enumerate(jobs):
        members.setdefault(kind_of(job), []).append(j)
    ways = {kind: modes(instance, jobs[rows[0]]) for kind, rows in members.items()}
    group_of_pool, group_gpus = _groups(topology, list(ways.values()))
    work = np.array([job.truth.work if job.truth else 0.0 for job in jobs], dtype=float)
    start_s = np.array([(job.costs or instance.costs).start_s for job in jobs], dtype=float)
    seconds, gpu_s, joules = start_s.copy(), np.zeros(len(jobs)), np.zeros(len(jobs))
    group = np.zeros(len(jobs), dtype=np.int64)
    kinds = []
    for kind, some in ways.items():
        rows = np.array(members[kind])
        begins = np.concatenate([[0.0], some.ends[:-1]])
        share = np.clip(np.minimum(work[rows, None], some.ends) - begins, 0.0, None)
        extra_w = some.gpus * idle.held_w[some.pool] + some.busy_w
        with np.errstate(divide="ignore"):
            pace = 1.0 / some.rate
        least_held = some.gpus.min() * idle.held_w[some.pool].min()
        seconds[rows] += share @ pace.min(axis=1)
        gpu_s[rows] = share @ (some.gpus * pace).min(axis=1) + start_s[rows] * some.gpus.min()
        joules[rows] = share @ _least_joules(extra_w, pace) + start_s[rows] * least_held
        group[rows] = group_of_pool[some.pool[0]]
        kinds.append(Alike(rows, share, some, extra_w, int(group_of_pool[some.pool[0]])))
    submit_s = np.array([job.submit_s for job in jobs], dtype=float)
    return Needs(
        submit_s, start_s, seconds, gpu_s, joules, group, group_gpus, idle.floor_w, tuple(kinds)
    )


def cheapest_idling(topology: Topology, *, may_sleep: bool = True) -> Idle:
    """Return the floor of power, and what a held GPU adds at least.

    A node awake with u of its n GPUs held draws ``awake_w - floor_w >= (awake_w - floor_w) u / n``
    more than its floor, as u <= n.
    """
    awake = topology.awake_w
    floor = least_node_w(topology) if may_sleep else awake
    per_gpu = (awake - floor) / topology.node_gpus
    pools = range(len(topology.pools))
    return Idle(
        float(floor.sum()), np.array([per_gpu[topology.node_pool == p].min() for p in pools])
    )


def _least_joules(extra_w: Floats, pace: Floats) -> Floats:
    """Return (S,) the fewest joules per unit of work; `pace` (S, N) is infinite if impossible."""
    possible = np.isfinite(pace)
    joules = extra_w * np.where(possible, pace, 0.0)
    return np.asarray(np.where(possible, joules, np.inf).min(axis=1))


def _groups(topology: Topology, ways: list[Modes]) -> tuple[NDArray[np.int64], Floats]:
    """Return the group of each pool (P,) and the GPUs of each group: pools joined by some job."""
    parent = list(range(len(topology.pools)))

    def root(pool: int) -> int:
        while parent[pool] != pool:
            pool = parent[pool]
        return pool

    for some in ways:
        pools = np.unique(some.pool).tolist()
        for pool in pools[1:]:
            parent[root(pool)] = root(pools[0])
    distinct, group = np.unique([root(pool) for pool in range(len(parent))], return_inverse=True)
    gpus = np.zeros(len(distinct))
    np.add.at(gpus, group, [pool.gpus for pool in topology.pools])
    return group.astype(np.int64), gpus
