"""Generated clusters with hyper-parameter sweeps among ordinary jobs.

The shares of GPU-hours are those of HFTA's study of the Vector Institute (Wang et al., MLSys 2021).
A sweep is a burst of trials of one program, each on one GPU. Trials that agree in batch size and
everything else that must be equal form a fusion class.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from ronda.instances.budget import Budget, StepSeries
from ronda.instances.cluster import uniform_cluster
from ronda.instances.errors import InputError
from ronda.instances.files.fits import fitted
from ronda.instances.generate.applications import APPLICATIONS, HOST_IDLE_W, RIGID
from ronda.instances.generate.applications import GPU as FINE
from ronda.instances.generate.common import check, estimate
from ronda.instances.generate.machines import watts_at
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.profile import MeasuredTime, Memory, Parametric, Profile, Sharing

SHARES = {"sweeps": 0.462, "several": 0.24, "other": 0.263, "isolated": 0.035}
"""Shares of GPU-hours: repetitive one-GPU jobs, multi-GPU jobs, the rest, single one-GPU jobs."""

GPU = msgspec.structs.replace(FINE, clocks=(0.57, 0.71, 0.86, 1.0))
"""An A100-like GPU with every other clock."""

RESTART_S, ERROR = 60.0, 0.3
"""Assumed pause of a restart, and assumed relative error of ordinary jobs' estimates."""


class Swept(NamedTuple):
    """A sweep's program: its packaged curves, and the part of a step that the clock slows."""

    fits: str
    step_s: float  # of one unit of the curves
    batch: float
    phi: float


SWEPT = {
    "pointnet-amp": Swept("hfta-pointnet_cls-amp-A100-40GB-", 0.1, 32.0, 0.3),
    "pointnet-fp32": Swept("hfta-pointnet_cls-fp32-A100-40GB-", 0.1, 32.0, 0.3),
    "resnet18": Swept("hydro-resnet18-1-RTX3090-24GB-", 256 / 50_000, 256.0, 0.8),
}
"""PointNet as measured on an A100; ResNet-18 on an RTX 3090, which stands in for one. Step times
of PointNet (0.1 s in fp32) and the clock's parts are assumptions; watts are those of resnet50."""


@dataclass
class _Draw:
    """Random numbers, the horizon and the profiles for a class of jobs."""

    rng: np.random.Generator
    span_s: float
    profiles: dict[str, Profile]

    def lognormal(self, median: float, sigma: float, low: float, high: float) -> float:
        """Return a lognormal number between `low` and `high`."""
        drawn = float(self.rng.lognormal(math.log(median), sigma))
        return min(max(drawn, low), high)

    def time_s(self) -> float:
        """Return a random time within the horizon."""
        return float(self.rng.uniform(0.0, self.span_s))


class SharingCurves(NamedTuple):
    """The packaged curves of models that share a GPU."""

    memory: Memory
    sharing: tuple[Sharing, ...]
    source: str


def curves_of(fits: str) -> SharingCurves:
    """Return the packaged curves whose names begin with `fits`."""
    found = fitted(fits)
    memory = next(fit.memory for fit in found if fit.memory is not None)
    sharing = tuple(fit.sharing for fit in found if fit.sharing is not None)
    return SharingCurves(memory, sharing, found[0].source)


def swept_profile(name: str, swept: Swept, gpu_type: str, source: str = "") -> Profile:
    """Return the profile of a sweep's program, based on its packaged sharing curves."""
    curves = curves_of(swept.fits)
    alone = next(s.time for s in curves.sharing if s.mode == "exclusive")
    assert isinstance(alone, MeasuredTime)
    seconds = alone.step_s[0] * swept.step_s
    return Profile(
        name=name,
        throughput={
            gpu_type: Parametric(alpha_c_s=0.0, beta_c_s=seconds / swept.batch, phi=swept.phi)
        },
        base_batch=swept.batch,
        memory=curves.memory,
        sharing={gpu_type: curves.sharing},
        source=source or curves.source,
    )


def mixed(
    gpu_hours: float = 120.0,
    gpus: int = 16,
    load: float = 1.5,
    cap: float = 0.8,
    seed: int = 0,
) -> Instance:
    """Return an instance of sweeps among ordinary jobs with the study's shares of GPU-hours.

    Parameters
    ----------
    gpu_hours
        GPU-hours of all jobs as requested, without sharing.
    gpus
        Number of A100s, in nodes of eight.
    load
        GPU-seconds of jobs per GPU-second of the cluster while jobs arrive.
    cap
        Power cap as a fraction between the power of all GPUs idle (0) and all GPUs busy (1).
    seed
        Seed of all random numbers; the same seed gives the same file.

    Raises
    ------
    InputError
        If an argument is out of its range.
    """
    check(1, gpus, "balanced", seed)
    for name, value in (("gpu_hours", gpu_hours), ("load", load), ("cap", cap)):
        if not 0 < value < math.inf:
            raise InputError(name, f"{value:g}", "a number above 0")
    if gpus % 8:
        raise InputError("gpus", str(gpus), "a multiple of 8: whole nodes")
    total_s = 3600.0 * gpu_hours
    power = APPLICATIONS[2].profile.power
    profiles = {a.profile.name: a.profile for a in APPLICATIONS} | {RIGID.name: RIGID}
    for name, swept in SWEPT.items():
        plain = swept_profile(name, swept, GPU.name)
        profiles[name] = msgspec.structs.replace(plain, power=power)
    draw = _Draw(np.random.default_rng([seed, 5]), total_s / (load * gpus), profiles)
    kinds: dict[str, Callable[[_Draw, float], Iterator[Job]]] = {
        "sweeps": _sweeps,
        "several": _several,
        "other": _other,
        "isolated": _isolated,
    }
    made = [job for name, kind in kinds.items() for job in kind(draw, SHARES[name] * total_s)]
    made.sort(key=lambda job: (job.submit_s, job.id))
    cluster = uniform_cluster(GPU, gpus // 8, 8, host_idle_w=HOST_IDLE_W)
    cap_w = watts_at(cluster, profiles, cap)
    return Instance(
        name=f"mixed-{gpus}-{seed}",
        cluster=cluster,
        profiles=profiles,
        jobs=tuple(made),
        curves={a.profile.name: a.curve() for a in APPLICATIONS},
        budget=Budget(power_cap_w=StepSeries(times_s=(0.0,), values=(cap_w,))),
        costs=Costs(start_s=10.0, restart_s=RESTART_S),
        cadence=Cadence(period_s=300.0),
        description=f"{len(made)} jobs on {gpus} GPUs, of which sweeps are 46.2 % of GPU-hours",
        source="generated by ronda; sharing: HFTA's poster, Hydro's artifact (fits)",
        licence="Apache-2.0",
        made={
            "generator": "mixed",
            "gpu_hours": gpu_hours,
            "gpus": gpus,
            "load": load,
            "cap": cap,
            "seed": seed,
        },
    )


def _sweeps(draw: _Draw, total_s: float) -> Iterator[Job]:
    """Yield trials of sweeps: 8 to 48 of up to three classes, equally long unless stopped early."""
    left_s, number = total_s, 0
    while left_s > 60.0:
        name = list(SWEPT)[draw.rng.integers(len(SWEPT))]
        swept, profile = SWEPT[name], draw.profiles[name]
        length_s = draw.lognormal(2700.0, 0.5, 900.0, 10_800.0)
        trials = int(draw.rng.integers(8, 49))
        if trials * length_s > left_s:
            length_s = max(left_s / trials, 60.0)
        classes = int(draw.rng.integers(1, 4))
        gaps_s = np.cumsum(draw.rng.exponential(20.0, trials))  # assumed
        start_s, model = draw.time_s(), profile.throughput[GPU.name]
        assert isinstance(model, Parametric)
        for k in range(trials):
            work = length_s / model.beta_c_s * float(draw.rng.lognormal(0.0, 0.03))
            stopped = draw.rng.random() < 0.25  # assumed
            share = float(draw.rng.uniform(0.2, 0.9)) if stopped else 1.0
            yield Job(
                id=f"s{number:02d}-{k:02d}",
                submit_s=round(start_s + float(gaps_s[k]), 3),
                profile=name,
                batch=swept.batch,
                name=f"sweep {number}",
                user=f"u{number % 7}",
                fusible=f"sweep {number} class {k % classes}",
                estimate=Estimate(work=round(work, 3), sd=round(0.15 * work, 3)),
                truth=Truth(work=round(share * work, 3)),
            )
        left_s -= trials * length_s
        number += 1


def _several(draw: _Draw, total_s: float) -> Iterator[Job]:
    for k, size_s in enumerate(_sizes(draw, total_s, 9000.0, 1.0)):
        gpus = int(draw.rng.choice((2, 4, 8), p=(0.4, 0.35, 0.25)))
        yield _elastic(draw, f"m{k:03d}", size_s, gpus, least=1, most=2 * gpus)


def _isolated(draw: _Draw, total_s: float) -> Iterator[Job]:
    for k, size_s in enumerate(_sizes(draw, total_s, 3600.0, 0.8)):
        yield _elastic(draw, f"i{k:03d}", size_s, 1, least=1, most=1)


def _elastic(draw: _Draw, name: str, size_s: float, gpus: int, *, least: int, most: int) -> Job:
    """Return an elastic job, whose size is `size_s` GPU-seconds at the speed of one GPU."""
    app = APPLICATIONS[draw.rng.integers(len(APPLICATIONS))]
    work = size_s * app.samples_per_gpu_s()
    return Job(
        id=name,
        submit_s=round(draw.time_s(), 3),
        profile=app.profile.name,
        gpus=gpus,
        min_gpus=least,
        max_gpus=most,
        estimate=estimate(draw.rng, work, ERROR),
        truth=Truth(work=round(work, 3), curve=app.profile.name),
    )


def _other(draw: _Draw, total_s: float) -> Iterator[Job]:
    """Yield rigid jobs on 1, 2 or 4 GPUs."""
    for k, size_s in enumerate(_sizes(draw, total_s, 5400.0, 1.0)):
        gpus = int(draw.rng.choice((1, 2, 4), p=(0.7, 0.2, 0.1)))
        yield Job(
            id=f"o{k:03d}",
            submit_s=round(draw.time_s(), 3),
            profile=RIGID.name,
            gpus=gpus,
            estimate=estimate(draw.rng, size_s / gpus, ERROR),
            truth=Truth(work=round(size_s / gpus, 3)),
        )


def _sizes(draw: _Draw, total_s: float, median_s: float, sigma: float) -> Iterator[float]:
    """Yield the GPU-seconds of jobs, which add up to `total_s`."""
    left_s = total_s
    while left_s > 60.0:
        size_s = min(draw.lognormal(median_s, sigma, 300.0, 8 * median_s), left_s)
        yield size_s
        left_s -= size_s
