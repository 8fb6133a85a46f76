"""The least seconds, GPU-seconds and joules that every job requires, computed from the true work.

In each stage of a job's gradient noise, the modes of the job (`ronda.formulations.bounds.modes`)
give three minima:

* the fastest mode gives the fewest seconds per unit of work,
* the most frugal mode gives the fewest GPU-seconds per unit of work,
* and perhaps another mode gives the fewest joules.

The three come from different modes, and a change between stages costs nothing, so no schedule
beats any of them. Before its first progress a job also holds GPUs for its ``start_s``; later
restarts can be avoided and do not count.

A job that the site may end at its time limit holds its fewest GPUs for so long at least, if it does
not complete, and owes no more than that. One that may never run, as a job before it may not end
well, owes nothing, and its time counts as 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.bounds.modes import JobType, Modes, kind_of, modes
from ronda.formulations.watts import least_held_w, least_node_w, node_w
from ronda.instances.base import Floats
from ronda.instances.cluster import Topology
from ronda.instances.instance import Instance


@dataclass(frozen=True, slots=True)
class Alike:
    """The jobs ``rows`` (j,) of an instance that are of one kind, in one ``group`` of pools.

    ``share`` (j, S) is the work of each job in each stage. ``extra_w`` (N,) are the watts of each
    of the ``modes`` of these jobs beyond the cheapest idling (see `Needs`).
    """

    rows: NDArray[np.int64]
    share: Floats
    modes: Modes
    extra_w: Floats
    group: int


@dataclass(frozen=True, slots=True)
class Needs:
    """The least needs of all jobs of an instance, as parallel arrays (J,) in the instance's order.

    ``seconds`` and ``gpu_s`` include the pause ``start_s`` before the first progress. ``joules``
    are the energy of a job beyond that of a cluster that idles as cheaply as possible, at
    ``idle_w`` watts, with every node awake or asleep indefinitely. ``group`` is the group of pools
    in which a job may run. Groups share no job and no GPU, and have ``group_gpus`` (G,) GPUs.
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
        """Whether every mode of every job draws at least as much power as idling."""
        return all((alike.extra_w >= 0).all() for alike in self.kinds)


def needs(instance: Instance, *, may_sleep: bool = True) -> Needs:
    """Return the least needs of every job.

    Without `may_sleep` no node sleeps, and jobs require more energy. InputError if a job has no
    truth, or nothing in the cluster can run it.
    """
    jobs, topology = instance.jobs, instance.cluster.topology
    held_w = least_held_w(topology) if may_sleep else np.zeros(len(topology.pools))
    watts = least_node_w(topology) if may_sleep else node_w(topology)
    watts[sorted({outage.node for outage in instance.faults.outages})] = 0.0
    idle_w = float(watts.sum())
    members: dict[JobType, list[int]] = {}
    for j, job in enumerate(jobs):
        members.setdefault(kind_of(job), []).append(j)
    ways = {kind: modes(instance, jobs[rows[0]]) for kind, rows in members.items()}
    group_of_pool, group_gpus = _groups(topology, list(ways.values()))
    retries = instance.faults.retries
    ends = [job.truth.last_work(retries) if job.truth else 0.0 for job in jobs]
    work = np.array(ends, dtype=float)
    most_s = _most_s(instance)
    start_s = np.array([(job.costs or instance.costs).start_s for job in jobs], dtype=float)
    start_s = np.minimum(start_s, most_s)
    seconds, gpu_s, joules = start_s.copy(), np.zeros(len(jobs)), np.zeros(len(jobs))
    group = np.zeros(len(jobs), dtype=np.int64)
    kinds = []
    for kind, some in ways.items():
        rows = np.array(members[kind])
        begins = np.concatenate([[0.0], some.ends[:-1]])
        share = np.clip(np.minimum(work[rows, None], some.ends) - begins, 0.0, None)
        extra_w = some.gpus * held_w[some.pool] + some.busy_w
        with np.errstate(divide="ignore"):
            pace = 1.0 / some.rate
        least_held = some.gpus.min() * held_w[some.pool].min()
        seconds[rows] += share @ pace.min(axis=1)
        gpu_s[rows] = share @ (some.gpus * pace).min(axis=1) + start_s[rows] * some.gpus.min()
        possible = np.isfinite(pace)
        each_j = np.where(possible, extra_w * np.where(possible, pace, 0.0), np.inf)
        joules[rows] = share @ each_j.min(axis=1) + start_s[rows] * least_held
        cut = rows[np.isfinite(most_s[rows])]
        if len(cut):
            seconds[cut] = np.minimum(seconds[cut], most_s[cut])
            gpu_s[cut] = np.minimum(gpu_s[cut], most_s[cut] * some.gpus.min())
            joules[cut] = np.minimum(joules[cut], most_s[cut] * least_held)
            at = np.isin(rows, cut)
            share[at] *= _owed(share[at], some, most_s[cut] - start_s[cut], least_held, extra_w)[
                :, None
            ]
        group[rows] = group_of_pool[some.pool[0]]
        kinds.append(Alike(rows, share, some, extra_w, int(group_of_pool[some.pool[0]])))
    submit_s = np.array([job.submit_s for job in jobs], dtype=float)
    return Needs(submit_s, start_s, seconds, gpu_s, joules, group, group_gpus, idle_w, tuple(kinds))


def _owed(share: Floats, some: Modes, most_s: Floats, least_held: float, extra_w: Floats) -> Floats:
    """Return the part of each job's work that costs no more than `most_s` seconds, shape (j,).

    That is so in the mode that is the fastest with the fewest GPUs, for GPUs and for joules.
    """
    fewest = np.flatnonzero(some.gpus == some.gpus.min())
    with np.errstate(divide="ignore", invalid="ignore"):
        run_s = share @ (1.0 / some.rate[:, fewest])
    mode = run_s.argmin(axis=1)
    run_s, extra_w = run_s[np.arange(len(run_s)), mode], extra_w[fewest[mode]]
    needs, mosts = np.stack([run_s, run_s * extra_w]), np.stack([most_s, most_s * least_held])
    parts = np.divide(mosts, needs, out=np.ones_like(needs), where=needs > mosts)
    return np.asarray(np.maximum(0.0, parts.min(axis=0)))


def _most_s(instance: Instance) -> Floats:
    """Return for how long each job may hold GPUs, 0 s if it may never run, shape (J,)."""
    jobs, retries, kills = instance.jobs, instance.faults.retries, instance.site.kills_at_limit
    limits = [np.inf if job.limit_s is None or not kills else job.limit_s for job in jobs]
    found = dict(zip((job.id for job in jobs), limits, strict=True))
    unsure = {job.id for job in jobs if found[job.id] < np.inf or job.sweep is not None}
    unsure |= {j.id for j in jobs if j.truth and j.truth.last_work(retries) < j.truth.work}
    after, before = [job for job in jobs if job.after], -1
    while len(unsure) != before:
        before = len(unsure)
        for job in after:
            may_fail = [
                a.when == "notok" or (a.when == "ok" and a.job in unsure) for a in job.after
            ]
            if any(may_fail) if job.after_all else all(may_fail):
                found[job.id] = 0.0
                unsure.add(job.id)
    return np.array([*found.values()], dtype=float)


def _groups(topology: Topology, ways: list[Modes]) -> tuple[NDArray[np.int64], Floats]:
    """Return the group of each pool (P,) and the GPUs of each group (G,); jobs join pools."""
    from scipy.sparse.csgraph import connected_components  # slow to import

    joined = np.zeros((len(topology.pools), len(topology.pools)), dtype=bool)
    for some in ways:
        joined[some.pool[0], some.pool] = True
    count, group = connected_components(joined, directed=False)
    gpus = np.zeros(count)
    np.add.at(gpus, group, [pool.gpus for pool in topology.pools])
    return group.astype(np.int64), gpus
