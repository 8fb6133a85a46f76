"""All modes in which a job may run, with its true speed, for bounds and not for schedulers.

These are the modes that `ronda.instances.check.checker` accepts: any number of GPUs within the
job's limits, its own batch or one of its profile, any clock of the GPU type, and any number of
nodes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.instances.base import Floats
from ronda.instances.cluster import GpuType, Topology
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.efficiency import efficiency, scale_at, stages
from ronda.instances.models.power import mixed_power_w
from ronda.instances.models.sharing import fastest_mode, widths
from ronda.instances.models.throughput import (
    fastest_step,
    model_of,
    samples_per_s,
    speed_and_share,
)
from ronda.instances.profile import NoiseCurve, Profile, Rigid, Tabular


class JobType(NamedTuple):
    """The fields of a job that decide how it can run, without its amount of work."""

    profile: str
    partition: str
    gpu_types: tuple[str, ...]
    low: int
    high: int
    asked: int
    batch: float | None
    curve: str | None
    throughput: float
    power: float
    fusible: bool


@dataclass(frozen=True, slots=True)
class Modes:
    """The modes of a kind of job, each the best over all batches and numbers of nodes.

    ``ends`` (S,) is the work at which each stage of the gradient noise ends; the last end is
    infinite. Each mode has a ``pool`` and ``gpus`` (in an array of jobs, a share of one GPU).
    ``busy_w`` (N,) are the watts of its GPUs beyond their idle power, the least over batches.
    ``rate`` (S, N) is the work per second in each stage, the greatest over batches, 0 where the job
    cannot run.
    """

    ends: Floats
    pool: NDArray[np.int64]
    gpus: Floats
    busy_w: Floats
    rate: Floats


def kind_of(job: Job) -> JobType:
    """Return the kind of a job; InputError if it has no truth."""
    if job.truth is None:
        raise InputError(f"job {job.id!r}", "no truth", "the true work of every job")
    return JobType(
        job.profile,
        job.partition,
        job.gpu_types,
        job.min_gpus or job.gpus,
        job.max_gpus or job.gpus,
        job.gpus,
        job.batch,
        job.truth.curve,
        job.truth.throughput,
        min(1.0, job.truth.power),  # limits are held against no more than the profile
        job.fusible is not None,
    )


def modes(instance: Instance, job: Job) -> Modes:
    """Return the modes of jobs of the same kind as `job`; InputError if there are none."""
    kind = kind_of(job)
    profile = instance.profiles[kind.profile]
    curve = None if kind.curve is None else instance.curves[kind.curve]
    topology = instance.cluster.topology
    found = []
    for p, pool in enumerate(topology.pools):
        name = pool.gpu_type.name
        allowed = not kind.gpu_types or name in kind.gpu_types
        if pool.partition == kind.partition and name in profile.throughput and allowed:
            found.append(_in_pool(topology, p, profile, kind, curve))
            if kind.fusible and profile.sharing.get(name):
                found.append(_in_arrays(found[-1], profile, pool.gpu_type, kind))
    rate = np.concatenate([m.rate for m in found], axis=1) if found else np.zeros((1, 0))
    runs = (rate > 0).any(axis=0)
    if not runs.any():
        place = f"job {job.id!r}"
        raise InputError(place, "nothing that can run it", "a pool with GPUs for its profile")
    where = np.concatenate([m.pool for m in found])[runs]
    gpus = np.concatenate([m.gpus for m in found])[runs]
    busy_w = np.concatenate([m.busy_w for m in found])[runs]
    if kind.power != 1.0:
        idle_w = gpus * np.array([pool.gpu_type.idle_w for pool in topology.pools])[where]
        busy_w = (busy_w + idle_w) * kind.power - idle_w
    return Modes(found[0].ends, where, gpus, busy_w, rate[:, runs] * kind.throughput)


def _in_pool(
    topology: Topology, p: int, profile: Profile, kind: JobType, curve: NoiseCurve | None
) -> Modes:
    """Return the modes in pool `p`, one for each pair of a number of GPUs and a clock."""
    pool = topology.pools[p]
    name, idle_w = pool.gpu_type.name, pool.gpu_type.idle_w
    model = model_of(profile, pool.gpu_type)
    power = profile.power.get(name)
    ends = np.array([np.inf] if curve is None else [end for end, _ in stages(curve)])
    if isinstance(model, Rigid):
        gpus = np.array([kind.asked] if kind.asked <= pool.gpus else [], dtype=float)
        watts = gpus * (mixed_power_w(power, idle_w, 1.0, 0.0) - idle_w)
        return Modes(ends, np.full(len(gpus), p), gpus, watts, np.ones((len(ends), len(gpus))))
    counts = np.array(sorted({*range(kind.low, kind.high + 1), kind.asked}), dtype=np.int64)
    counts = counts[counts <= pool.gpus]
    if isinstance(model, Tabular):
        counts = counts[np.isin(counts, model.gpus)]
    own = profile.base_batch if kind.batch is None else kind.batch
    batches = np.array(sorted({own, *profile.batches}))
    # Arrays (N, B, C).
    n, b = counts[:, None, None], batches[None, :, None]
    clocks = np.asarray(pool.gpu_type.clocks)[None, None, :]
    fewest = -(-n // pool.gpus_per_node)
    speed = np.zeros((len(counts), len(batches), clocks.shape[2]))
    for nodes in _node_counts(model, fewest, np.minimum(n, pool.nodes)):
        at = Configuration(n, nodes, b, clocks)
        speed = np.maximum(speed, samples_per_s(profile, name, at))
    _, share = speed_and_share(profile, pool.gpu_type, Configuration(n, fewest, b, clocks))
    watts = n * (mixed_power_w(power, idle_w, clocks, share) - idle_w)
    rate = np.zeros((len(ends), *speed.shape[::2]))
    for k, worth in enumerate(_worth(profile, curve, batches).T):
        rate = np.maximum(rate, worth[:, None, None] * speed[None, :, k, :])
    shape = (len(counts), clocks.shape[2])
    return Modes(
        ends,
        np.full(shape[0] * shape[1], p),
        np.repeat(counts.astype(float), shape[1]),
        np.where(speed > 0, watts, np.inf).min(axis=1).ravel(),
        rate.reshape(len(ends), -1),
    )


def _in_arrays(alone: Modes, profile: Profile, gpu_type: GpuType, kind: JobType) -> Modes:
    """Return the modes of jobs that share a GPU in an array, for each width of the array."""
    one = np.flatnonzero(alone.gpus == 1)
    batches = np.array([kind.batch or profile.base_batch, *profile.batches])
    clocks = np.asarray(gpu_type.clocks)[:, None]
    passes = fastest_step(profile, gpu_type, Configuration(1, 1, batches, clocks)).passes
    least = float((batches / np.where(passes > 0, passes, np.inf)).min())
    paces = {
        k: way[1]
        for k in sorted(
            {
                k
                for s in profile.sharing[gpu_type.name]
                for k in widths(profile, gpu_type, s.mode, least)
            }
        )
        if (way := fastest_mode(profile, gpu_type, k, least)) is not None
    }
    k, pace = (np.array(list(column), dtype=float)[:, None] for column in (paces, paces.values()))
    rate = (alone.rate[:, None, one] * pace[None]).reshape(len(alone.ends), -1)
    return Modes(
        alone.ends,
        np.tile(alone.pool[one], len(paces)),
        (alone.gpus[one] / k).ravel(),
        (alone.busy_w[one] / k).ravel(),
        rate,
    )


def _node_counts(
    model: object, fewest: NDArray[np.int64], most: NDArray[np.int64]
) -> Iterable[NDArray[np.int64]]:
    if isinstance(model, Tabular):
        spreads: Iterable[int] = sorted(set(model.nodes))
    else:
        spreads = (1, 2)  # within one node, or not
    for spread in spreads:
        yield np.minimum(np.maximum(fewest, spread), np.maximum(most, fewest))


def _worth(profile: Profile, curve: NoiseCurve | None, batches: Floats) -> Floats:
    if curve is None:
        return np.ones((1, len(batches)))
    return np.stack(
        [efficiency(scale_at(x, batches), batches, profile.base_batch) for _, x in stages(curve)]
    )
