"""What every job of an instance needs at the very least, whatever schedules it; reads the truth.

For each *kind* of job (same profile, limits, batch and noise curve) every configuration that the
rules allow is looked at: all GPU counts within its limits, all batches, clocks and numbers of
nodes. In each stage of the job's gradient noise the best of them gives

* the fewest seconds per unit of work (fastest configuration),
* the fewest GPU-seconds per unit of work (most frugal one),
* the fewest joules per unit of work (see `joules` of `Needs`).

The three are taken from different configurations, and changing between stages costs nothing, so
no schedule does better in any of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.efficiency import efficiency, scale_at, stages
from ronda.formulations.power import mixed_power_w
from ronda.formulations.throughput import model_of, samples_per_s, sync_share
from ronda.instances.cluster import Topology
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.profile import NoiseCurve, Profile, Rigid, Tabular

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Needs:
    """Least needs of all jobs of an instance, as parallel arrays in the instance's order.

    Attributes
    ----------
    submit_s
        (J,) submission.
    seconds
        (J,) holding GPUs, the pause before the first progress included.
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
    all_positive
        Whether no configuration of any job draws less than idling does.
    """

    submit_s: Floats
    seconds: Floats
    gpu_s: Floats
    joules: Floats
    group: NDArray[np.int64]
    group_gpus: Floats
    idle_w: float
    all_positive: bool


class Kind(NamedTuple):
    """All that decides what a job can run on, but for its amount of work."""

    profile: str
    partition: str
    gpu_types: tuple[str, ...]
    low: int
    high: int
    asked: int
    batch: float | None
    curve: str | None


class Least(NamedTuple):
    """Least needs of a kind of job: per unit of work in each stage (S,), and pools it may use."""

    ends: Floats  # work at which each stage ends, the last one infinite
    seconds: Floats
    gpu_s: Floats
    joules: Floats
    fewest_gpus: int
    pause_w: float  # of a GPU held without progress, beyond idling in the cheapest way
    pools: tuple[int, ...]
    positive: bool


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
    jobs = instance.jobs
    idle = _idle(instance.cluster.topology, may_sleep=may_sleep)
    known: dict[Kind, Least] = {}
    members: dict[Kind, list[int]] = {}
    for j, job in enumerate(jobs):
        kind = _kind(job)
        if kind not in known:
            known[kind] = _least(instance, job, kind, idle.extra_w)
            members[kind] = []
        members[kind].append(j)
    group_of_pool, group_gpus = _groups(
        instance.cluster.topology, (least.pools for least in known.values())
    )
    seconds, gpu_s, joules = (np.empty(len(jobs)) for _ in range(3))
    group = np.empty(len(jobs), dtype=np.int64)
    for kind, least in known.items():
        rows = np.array(members[kind])
        work = np.array([truth.work for j in rows if (truth := jobs[j].truth) is not None])
        start_s = np.array([(jobs[j].costs or instance.costs).start_s for j in rows])
        begins = np.concatenate([[0.0], least.ends[:-1]])
        share = np.clip(np.minimum(work[:, None], least.ends) - begins, 0.0, None)
        seconds[rows] = share @ least.seconds + start_s
        gpu_s[rows] = share @ least.gpu_s + start_s * least.fewest_gpus
        joules[rows] = share @ least.joules + start_s * least.fewest_gpus * least.pause_w
        group[rows] = group_of_pool[least.pools[0]]
    return Needs(
        submit_s=np.array([job.submit_s for job in jobs]),
        seconds=seconds,
        gpu_s=gpu_s,
        joules=joules,
        group=group,
        group_gpus=group_gpus,
        idle_w=idle.floor_w,
        all_positive=all(least.positive for least in known.values()),
    )


class Idle(NamedTuple):
    """Idling in the cheapest way.

    Attributes
    ----------
    floor_w
        Watts of all nodes, each awake or asleep, whichever draws less.
    extra_w
        (P,) least watts that a GPU of a pool adds to that when a job holds it without progress.
    """

    floor_w: float
    extra_w: Floats


def _idle(topology: Topology, *, may_sleep: bool) -> Idle:
    """Return the floor of power, and what a held GPU adds at least.

    A node awake with u of its n GPUs held draws ``awake_w - floor_w >= (awake_w - floor_w) u / n``
    more than its floor, as u <= n.
    """
    awake = topology.host_idle_w + topology.node_gpus * topology.gpu_idle_w
    floor = np.minimum(awake, topology.sleep_w) if may_sleep else awake
    per_gpu = (awake - floor) / topology.node_gpus
    pools = range(len(topology.pools))
    return Idle(
        float(floor.sum()), np.array([per_gpu[topology.node_pool == p].min() for p in pools])
    )


def _kind(job: Job) -> Kind:
    if job.truth is None:
        raise InputError(f"job {job.id!r}", "no truth", "the true work of every job")
    return Kind(
        job.profile,
        job.partition,
        job.gpu_types,
        job.min_gpus or job.gpus,
        job.max_gpus or job.gpus,
        job.gpus,
        job.batch,
        job.truth.curve,
    )


def _least(instance: Instance, job: Job, kind: Kind, extra_w: Floats) -> Least:
    """Return the least needs of a kind over all pools that can run it."""
    profile = instance.profiles[kind.profile]
    curve = None if kind.curve is None else instance.curves[kind.curve]
    topology = instance.cluster.topology
    found: list[tuple[int, Configurations]] = []
    for p, pool in enumerate(topology.pools):
        name = pool.gpu_type.name
        allowed = not kind.gpu_types or name in kind.gpu_types
        if pool.partition == kind.partition and name in profile.throughput and allowed:
            some = _configurations(topology, p, profile, kind, curve)
            if (some.rate > 0).any():
                found.append((p, some))
    if not found:
        place = f"job {job.id!r}"
        raise InputError(place, "nothing that can run it", "a pool with GPUs for its profile")
    ends = [np.inf] if curve is None else [end for end, _ in stages(curve)]
    with np.errstate(divide="ignore"):
        seconds = np.min([(1.0 / c.rate).min(axis=(1, 2, 3)) for _, c in found], axis=0)
        gpu_s = np.min([(c.gpus / c.rate).min(axis=(1, 2, 3)) for _, c in found], axis=0)
    watts = [(c.gpus * extra_w[p] + c.extra_w, c.rate) for p, c in found]
    joules = np.min(
        [
            np.where(r > 0, w / np.where(r > 0, r, 1.0), np.inf).min(axis=(1, 2, 3))
            for w, r in watts
        ],
        axis=0,
    )
    usable = [np.broadcast_to(c.gpus, c.rate.shape)[c.rate > 0] for _, c in found]
    return Least(
        np.array(ends),
        seconds,
        gpu_s,
        joules,
        int(min(gpus.min() for gpus in usable)),
        float(min(extra_w[p] for p, _ in found)),
        tuple(p for p, _ in found),
        bool((joules >= 0).all()),
    )


class Configurations(NamedTuple):
    """Configurations of a kind of job in a pool; arrays broadcast to (S, N, B, C).

    S stages of its noise, N numbers of GPUs, B batches, C clocks.
    """

    gpus: Floats
    rate: Floats  # 0: not possible
    extra_w: Floats  # watts of all its GPUs beyond idle


def _configurations(
    topology: Topology, p: int, profile: Profile, kind: Kind, curve: NoiseCurve | None
) -> Configurations:
    """Return all configurations in pool `p`, each on the number of nodes that suits it best."""
    pool = topology.pools[p]
    name, idle_w = pool.gpu_type.name, pool.gpu_type.idle_w
    model = model_of(profile, pool.gpu_type)
    power = profile.power.get(name)
    if isinstance(model, Rigid):
        gpus = np.array([kind.asked] if kind.asked <= pool.gpus else [], dtype=float)
        gpus = gpus[None, :, None, None]
        rate = np.ones(gpus.shape)
        watts = gpus * mixed_power_w(power, idle_w, 1.0, 0.0)
        return Configurations(gpus, rate, watts - gpus * idle_w)
    counts = np.array(sorted({*range(kind.low, kind.high + 1), kind.asked}))
    counts = counts[counts <= pool.gpus]
    if isinstance(model, Tabular):
        counts = counts[np.isin(counts, model.gpus)]
    own = profile.base_batch if kind.batch is None else kind.batch
    batches = np.array(sorted({own, *profile.batches}))
    n, b = counts[:, None, None], batches[None, :, None]
    clocks = np.asarray(pool.gpu_type.clocks)[None, None, :]
    fewest = -(-counts // pool.gpus_per_node)[:, None, None]
    speed = np.zeros(np.broadcast_shapes(n.shape, b.shape, clocks.shape))
    for nodes in _node_counts(model, fewest, n, pool.nodes):
        speed = np.maximum(speed, samples_per_s(profile, name, n, nodes, b, clocks))
    share = sync_share(profile, pool.gpu_type, n, fewest, b, clocks)
    watts = n * mixed_power_w(power, idle_w, clocks, share)
    worth = _worth(profile, curve, batches)
    return Configurations(
        n[None].astype(float), worth[:, None, :, None] * speed, (watts - n * idle_w)[None]
    )


def _node_counts(
    model: object, fewest: NDArray[np.int64], gpus: NDArray[np.int64], nodes: int
) -> Iterable[NDArray[np.int64]]:
    """Yield the numbers of nodes that can make a difference, clipped to what is possible."""
    most = np.minimum(gpus, nodes)
    if isinstance(model, Tabular):
        spreads: Iterable[int] = sorted(set(model.nodes))
    else:
        spreads = (1, 2)  # within one node, or not
    for spread in spreads:
        yield np.minimum(np.maximum(fewest, spread), np.maximum(most, fewest))


def _worth(profile: Profile, curve: NoiseCurve | None, batches: Floats) -> Floats:
    """Return (S, B) the statistical efficiency of each batch in each stage."""
    if curve is None:
        return np.ones((1, len(batches)))
    return np.stack(
        [efficiency(scale_at(x, batches), batches, profile.base_batch) for _, x in stages(curve)]
    )


def _groups(
    topology: Topology, pools_of_kinds: Iterable[tuple[int, ...]]
) -> tuple[NDArray[np.int64], Floats]:
    """Return the group of each pool (P,) and the GPUs of each group: pools joined by some job."""
    parent = list(range(len(topology.pools)))

    def root(pool: int) -> int:
        while parent[pool] != pool:
            pool = parent[pool]
        return pool

    for pools in pools_of_kinds:
        for pool in pools[1:]:
            parent[root(pool)] = root(pools[0])
    roots = [root(pool) for pool in range(len(parent))]
    distinct = sorted(set(roots))
    group = np.array([distinct.index(r) for r in roots], dtype=np.int64)
    gpus = np.zeros(len(distinct))
    for pool, g in zip(topology.pools, group, strict=True):
        gpus[g] += pool.gpus
    return group, gpus
