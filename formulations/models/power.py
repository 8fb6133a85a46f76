"""What a job draws: power of a busy GPU against its clock, mixed with synchronisation.

``P(s) = a + b min(s, s0) + c max(s^3 - s0^3, 0)`` watts per GPU: below s0 the voltage is at its
floor and power is linear in speed, above it is cubic. The form and the constants in use are our
own fit to the public Zeus traces (You et al., NSDI 2023); the traces set power caps, not clocks.
"""

import numpy as np
from numpy.typing import ArrayLike

from ronda.formulations.models.throughput import fastest_step, model_of
from ronda.instances.arrays import Floats
from ronda.instances.cluster import GpuType
from ronda.instances.job import Option
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.round import Round


def gpu_power_w(curve: PowerCurve, clock: ArrayLike) -> Floats:
    """Return P(s) in watts of one GPU that computes at relative speed s."""
    s = np.asarray(clock, dtype=float)
    cubic = np.maximum(s**3 - curve.s0**3, 0.0)
    return np.asarray(curve.a_w + curve.b_w * np.minimum(s, curve.s0) + curve.c_w * cubic)


def mixed_power_w(
    curve: PowerCurve | None, idle_w: float, clock: ArrayLike, sync_share: ArrayLike
) -> Floats:
    """Return the mean watts of one busy GPU.

    Parameters
    ----------
    curve
        Power curve; None: the GPU draws `idle_w` (no power model).
    idle_w
        Idle power of the GPU in watts.
    clock
        Clock as a fraction of the maximum.
    sync_share
        Share of time that only synchronises, at ``curve.sync_w`` watts if that is given.
    """
    share = np.asarray(sync_share, dtype=float)
    if curve is None:
        return np.full(np.broadcast_shapes(np.shape(clock), share.shape), float(idle_w))
    busy = gpu_power_w(curve, clock)
    if curve.sync_w is None:
        return np.asarray(busy + 0.0 * share)
    return np.asarray((1.0 - share) * busy + share * curve.sync_w)


def extra_w(round: Round, option: Option) -> float:
    """Return the watts that a job adds to a cluster whose GPUs idle."""
    pool = round.cluster.topology.pools[option.pool]
    return option.power_w - option.gpus * pool.gpu_type.idle_w


def extra_gpu_w(round: Round, option: Option) -> float:
    """Return the watts that each GPU of a job adds."""
    pool = round.cluster.topology.pools[option.pool]
    return option.power_w / option.gpus - pool.gpu_type.idle_w


def speed_and_watts(
    profile: Profile,
    gpu_type: GpuType,
    gpus: ArrayLike,
    nodes: ArrayLike,
    batch: ArrayLike,
    clock: ArrayLike = 1.0,
    racks: ArrayLike = 1,
) -> tuple[Floats, Floats]:
    """Return samples per second (rigid: 1; 0 where infeasible) and watts of all GPUs of a job.

    Parameters as `ronda.formulations.models.throughput.fastest_step`; hosts are not part of it.
    """
    size = np.broadcast_shapes(*(np.shape(x) for x in (gpus, nodes, batch, clock, racks)))
    speed, share = np.ones(size), np.zeros(size)
    if not isinstance(model_of(profile, gpu_type), Rigid):
        step = fastest_step(profile, gpu_type, gpus, nodes, batch, clock, racks)
        speed = np.nan_to_num(np.asarray(batch) / step.seconds, nan=0.0)
        share = np.nan_to_num(step.sync_share, nan=0.0)
    each_w = mixed_power_w(profile.power.get(gpu_type.name), gpu_type.idle_w, clock, share)
    return speed, np.broadcast_to(np.asarray(gpus) * each_w, size)


def job_power_w(
    profile: Profile,
    gpu_type: GpuType,
    gpus: int,
    nodes: int,
    batch: float,
    clock: float = 1.0,
    racks: int = 1,
) -> float:
    """Return the watts of `speed_and_watts` of one configuration."""
    return float(speed_and_watts(profile, gpu_type, gpus, nodes, batch, clock, racks)[1])
