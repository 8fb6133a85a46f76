"""The power of a job (that of a busy GPU at its clock, mixed with synchronisation) and of a node.

A GPU draws ``P(s) = a + b min(s, s0) + c max(s^3 - s0^3, 0)`` watts. Below s0 the voltage is at its
floor and the power is linear in the speed; above s0 it is cubic. The form and the constants are our
own fit to the public Zeus traces (You et al., NSDI 2023), which set power caps, not clocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ronda.instances.base import Floats
from ronda.instances.cluster import GpuType
from ronda.instances.errors import InputError
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.rated import rates_and_watts
from ronda.instances.models.throughput import measured_steps, model_of, speed_and_share
from ronda.instances.profile import PowerCurve, Profile, Rated


def gpu_power_w(curve: PowerCurve, clock: ArrayLike = 1.0) -> Floats:
    """Return P(s), the watts of one GPU that computes at relative speed s."""
    s = np.asarray(clock, dtype=float)
    cubic = np.maximum(s**3 - curve.s0**3, 0.0)
    return np.asarray(curve.a_w + curve.b_w * np.minimum(s, curve.s0) + curve.c_w * cubic)


def least_power_w(curve: PowerCurve, clock: float) -> float:
    """Return the least watts of one busy GPU at a clock, for any share of synchronisation."""
    busy_w = float(gpu_power_w(curve, clock))
    return busy_w if curve.sync_w is None else min(busy_w, curve.sync_w)


def mixed_power_w(
    curve: PowerCurve | None, idle_w: float, clock: ArrayLike, sync_share: ArrayLike
) -> Floats:
    """Return the mean watts of one busy GPU.

    Without a `curve` the GPU draws `idle_w`. It synchronises for `sync_share` of the time and draws
    ``curve.sync_w`` watts meanwhile, if that is given.
    """
    share = np.asarray(sync_share, dtype=float)
    if curve is None:
        return np.full(np.broadcast_shapes(np.shape(clock), share.shape), float(idle_w))
    busy = gpu_power_w(curve, clock)
    if curve.sync_w is None:
        return np.asarray(busy + 0.0 * share)
    return np.asarray((1.0 - share) * busy + share * curve.sync_w)


def speed_and_watts(
    profile: Profile, gpu_type: GpuType, at: Configuration
) -> tuple[Floats, Floats]:
    """Return samples per second (see `speed_and_share`) and the watts of a job's GPUs alone."""
    model = model_of(profile, gpu_type)
    if isinstance(model, Rated):
        return rates_and_watts(model, gpu_type.idle_w, at)
    speed, share = speed_and_share(profile, gpu_type, at)
    each_w = mixed_power_w(profile.power.get(gpu_type.name), gpu_type.idle_w, at.clock, share)
    return speed, np.broadcast_to(np.asarray(at.gpus) * each_w, speed.shape)


def measured_speeds_and_watts(
    profiles: Sequence[Profile], gpu_type: GpuType, at: Configuration
) -> tuple[Floats, Floats]:
    """Return the `speed_and_watts` of several profiles with measured steps in one pass.

    X profiles and R configurations give results of shape (X, R).
    """
    gpus, _, _, clock, _ = columns = at.columns()
    shape = len(profiles), len(gpus)
    which = np.repeat(np.arange(len(profiles)), len(gpus))
    many = Configuration(*(np.tile(column, len(profiles)) for column in columns))
    step = measured_steps(profiles, gpu_type, which, many)
    speed, share = (x.reshape(shape) for x in step.speed_and_share(many.batch))
    each_w = [
        mixed_power_w(profile.power.get(gpu_type.name), gpu_type.idle_w, clock, own)
        for profile, own in zip(profiles, share, strict=True)
    ]
    return speed, np.asarray(gpus * np.array(each_w))


def job_power_w(profile: Profile, gpu_type: GpuType, at: Configuration) -> float:
    """Return the watts of one configuration (see `speed_and_watts`)."""
    return float(speed_and_watts(profile, gpu_type, at)[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraw:
    """The power draw of a node without jobs, and the time that it takes to wake.

    Few sources state either, and none measured them on Helios. Idle servers with eight GPUs are
    known to draw 800 W and to boot in five minutes. Cooling is not counted.

    Attributes
    ----------
    idle_w
        Power draw of an awake node without jobs, in watts.
    sleep_w
        Power draw of a sleeping node, in watts.
    wake_s
        Time that a wake-up takes, in seconds. Jobs wait for the node; decisions ignore this time.
    wake_w
        Power draw of a waking node, in watts.
    """

    idle_w: float = 800.0
    sleep_w: float = 20.0
    wake_s: float = 300.0
    wake_w: float = 800.0

    def __post_init__(self) -> None:
        """Raise an error if a power or the time is impossible."""
        for name in ("idle_w", "sleep_w", "wake_s", "wake_w"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise InputError(name.replace("_", "-"), f"{value:g}", "0 or more")
