"""Six applications with realistic constants, for generated instances.

The throughput is our least-squares fit (1 to 3 % mean error) of Pollux's form to the public A100
scaling tables of ElasticFlow (Gu et al., ASPLOS 2023), with 1 to 64 GPUs, 8 per node. The power is
our fit to the public V100 power-cap traces of Zeus (You et al., NSDI 2023), scaled from their 300 W
GPU to a 400 W one. If Zeus has no trace of an application, that of a similar application is used.
Batch ladders, clock shares and gradient noise are assumptions.
"""

from dataclasses import dataclass
from typing import NamedTuple

from msgspec import structs

from ronda.instances.cluster import GpuType
from ronda.instances.models.throughput import plain_speed
from ronda.instances.profile import (
    NoiseCurve,
    Parametric,
    PowerCurve,
    Profile,
    Rigid,
    Throughput,
)

GPU = GpuType(
    name="A100",
    memory_gib=40.0,
    idle_w=50.0,
    clocks=(0.5, 0.57, 0.64, 0.71, 0.79, 0.86, 0.93, 1.0),  # eight roughly even steps
)
"""An A100-like GPU; idle power is an assumption."""


class GpuKind(NamedTuple):
    """A GPU type, with its slowdown and its power relative to an A100."""

    gpu: GpuType
    slowness: float
    watts: float


GPU_TYPES = (
    GpuKind(GPU, 1.0, 1.0),
    GpuKind(GpuType(name="V100", memory_gib=32.0, idle_w=40.0, clocks=GPU.clocks), 2.0, 300 / 400),
    GpuKind(GpuType(name="T4", memory_gib=16.0, idle_w=10.0, clocks=GPU.clocks), 5.0, 70 / 400),
)
"""GPU types of generated clusters. The slowdown is an assumption; watts follow power limits."""

_ACROSS_RACKS = 2.0
"""The ratio of the seconds of synchronising across racks to those within a rack (assumed)."""

HOST_IDLE_W = 300.0
"""Watts of a node of eight GPUs without its GPUs (an assumption)."""

_SOURCE = (
    "throughput: ronda's fit to ElasticFlow's public A100 tables; power: ronda's fit to Zeus' "
    "public V100 traces, scaled by 4/3; batches, clock share and noise: assumptions"
)
_WATTS = 400.0 / 300.0


@dataclass(frozen=True, slots=True)
class MadeApplication:
    """An application: its profile and its (early, late) gradient noise scale in samples."""

    profile: Profile
    noise: tuple[float, float]

    def samples_per_gpu_s(self) -> float:
        """Return the samples per second of one GPU at full clock and the base batch."""
        return plain_speed(self.profile, GPU.name, 1, 1, self.profile.base_batch)

    def curve(self) -> NoiseCurve:
        """Return the noise scale's growth in three stages, which change at 0.5 and 2 GPU-hours."""
        early, late = self.noise
        hour = 3600.0 * self.samples_per_gpu_s()
        return NoiseCurve(
            until=(0.5 * hour, 2.0 * hour, 8.0 * hour),
            batches=(self.profile.base_batch,),
            scale=((early,), ((early * late) ** 0.5,), (late,)),
        )


def _application(
    name: str,
    milliseconds: tuple[float, float, float, float, float, float],
    gamma: float,
    phi: float,
    watts: tuple[float, float, float, float],
    batches: tuple[float, ...],
    max_local_batch: float,
    noise: tuple[float, float],
) -> MadeApplication:
    """Make an application from one row of the table below."""
    ac, bc, ar, br, an, bn = (t / 1000.0 for t in milliseconds)
    model = Parametric(
        alpha_c_s=ac,
        beta_c_s=bc,
        alpha_r_s=ar,
        beta_r_s=br,
        alpha_n_s=an,
        beta_n_s=bn,
        gamma=gamma,
        phi=phi,
    )
    a, b, c, s0 = watts
    power = PowerCurve(a_w=a * _WATTS, b_w=b * _WATTS, c_w=c * _WATTS, s0=s0)
    profile = Profile(
        name=name,
        throughput={GPU.name: model},
        power={GPU.name: power},
        base_batch=batches[0],
        batches=batches,
        max_local_batch=max_local_batch,
        source=_SOURCE,
    )
    return MadeApplication(profile, noise)


# name, (alpha_c, beta_c, alpha_r, beta_r, alpha_n, beta_n) in ms, gamma, phi,
# (a, b, c, s0) of the V100, batches, largest local batch, (early, late) noise.
# fmt: off
APPLICATIONS = (
    _application("bert", (48.61, 1.832, 65.24, 1.639, 72.02, 0.456), 2.61, 0.9,
                 (23, 157, 200, 0.87), (64.0, 128.0, 256.0), 128.0, (100.0, 1500.0)),
    _application("gpt2", (23.72, 0.880, 21.51, 1.879, 31.31, 0.349), 1.71, 0.9,
                 (24, 143, 177, 0.81), (128.0, 256.0, 512.0), 256.0, (300.0, 4000.0)),
    _application("resnet50", (7.41, 2.133, 15.87, 2.042, 32.16, 0.155), 1.21, 0.8,
                 (26, 140, 222, 0.88), (128.0, 256.0, 512.0, 1024.0), 256.0, (400.0, 8000.0)),
    _application("vgg16", (0.0, 3.061, 13.04, 2.266, 26.93, 0.094), 1.0, 0.8,
                 (26, 140, 222, 0.88), (128.0, 256.0, 512.0), 256.0, (300.0, 3000.0)),
    _application("inception3", (21.36, 2.898, 40.38, 2.604, 58.88, 0.222), 1.76, 0.7,
                 (0, 130, 194, 0.86), (64.0, 128.0, 256.0), 128.0, (200.0, 3000.0)),
    _application("deepspeech2", (45.90, 8.956, 2.93, 2.787, 16.44, 0.000), 1.0, 0.7,
                 (0, 135, 227, 0.86), (32.0, 64.0, 128.0), 64.0, (80.0, 800.0)),
)
# fmt: on

MODELS = {app.profile.name: app.profile.throughput[GPU.name] for app in APPLICATIONS}
"""Their throughput models, by name."""

RIGID = Profile(
    name="rigid",
    throughput={GPU.name: Rigid()},
    power={GPU.name: APPLICATIONS[2].profile.power[GPU.name]},
    source="runs only as it was asked for; power of resnet50",
)
"""The profile of jobs that run only as requested."""


def on_machines(profile: Profile, types: int, *, across_racks: bool) -> Profile:
    """Return a profile for the first `types` GPU types, slower across racks if `across_racks`."""
    model, curve = profile.throughput[GPU.name], profile.power[GPU.name]
    if across_racks and isinstance(model, Parametric):
        model = structs.replace(
            model,
            alpha_x_s=_ACROSS_RACKS * model.alpha_n_s,
            beta_x_s=_ACROSS_RACKS * model.beta_n_s,
        )
    kinds = GPU_TYPES[:types]
    return structs.replace(
        profile,
        throughput={kind.gpu.name: _slower(model, kind.slowness) for kind in kinds},
        power={
            kind.gpu.name: PowerCurve(
                a_w=curve.a_w * kind.watts,
                b_w=curve.b_w * kind.watts,
                c_w=curve.c_w * kind.watts,
                s0=curve.s0,
            )
            for kind in kinds
        },
    )


def _slower(model: Throughput, slowness: float) -> Throughput:
    if not isinstance(model, Parametric):
        return model
    return structs.replace(
        model, alpha_c_s=model.alpha_c_s * slowness, beta_c_s=model.beta_c_s * slowness
    )
