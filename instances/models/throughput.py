"""The speed of a job: seconds per iteration, samples per second, and work per second.

A job has n GPUs on N nodes, global batch B, m gradient passes per iteration (m - 1 of them only
accumulate), local batch b = B / (n m) of a pass, clock s, and the share phi of computing that the
clock slows. An iteration computes m times and synchronises once::

    T(m) = m C(b, s) + X(b, s)

    Parametric  C = (alpha_c + beta_c b) (phi/s + 1 - phi)
                X = (C^gamma + T_sync^gamma)^(1/gamma) - C          what does not overlap
    Tabular     C = (step(b) - sync(b)) (phi/s + 1 - phi),  X = sync(b)

At full clock T(m) is ``(m - 1) T_grad + T_iter`` and ``step + (m - 1)(step - sync)``, the form of
Pollux (Qiao et al., OSDI 2021, section 3.2, and goodput.py of its artifact). The clock term is
ours. We assume that synchronisation does not depend on the clock. The fastest m within the limits
on the local batch is chosen.

All functions broadcast over their numeric arguments, and over the fields of a `Configuration`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ronda.instances.base import Floats, Rows
from ronda.instances.cluster import GpuType
from ronda.instances.errors import InputError
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.rated import rates_and_watts
from ronda.instances.models.tabular import (
    cells,
    fastest_passes,
    measured_phases,
    stacked,
    table_of_model,
)
from ronda.instances.profile import Parametric, Profile, Rated, Rigid, Tabular, Throughput
from ronda.instances.violation import ROUNDING


@dataclass(frozen=True, slots=True)
class Step:
    """The fastest iteration of each configuration (arrays of one shape).

    ``sync_share`` is the part of the ``seconds`` that only synchronises. Where no number of
    gradient passes is feasible, both are NaN and ``passes`` is 0.
    """

    seconds: Floats
    sync_share: Floats
    passes: Floats

    def speed_and_share(self, batch: ArrayLike) -> tuple[Floats, Floats]:
        """Return the samples per second of a global batch and the share, 0 where infeasible."""
        speed = np.nan_to_num(np.asarray(batch, dtype=float) / self.seconds, nan=0.0)
        return np.asarray(speed), np.asarray(np.nan_to_num(self.sync_share, nan=0.0))


def slowdown(phi: float | Floats, clock: ArrayLike) -> Floats:
    """Return the factor by which computing takes longer at a clock, ``phi / s + 1 - phi``."""
    return np.asarray(phi / np.asarray(clock, dtype=float) + (1.0 - phi))


def sync_s(model: Parametric, gpus: ArrayLike, nodes: ArrayLike, racks: ArrayLike = 1) -> Floats:
    """Return T_sync in seconds: 0 for one GPU, else alpha + beta (n - 2)."""
    n, spread = np.asarray(gpus, dtype=float), np.asarray(nodes) > 1
    alpha = np.where(spread, model.alpha_n_s, model.alpha_r_s)
    beta = np.where(spread, model.beta_n_s, model.beta_r_s)
    if model.minds_racks:
        across = spread & (np.asarray(racks) > 1)
        alpha = alpha if model.alpha_x_s is None else np.where(across, model.alpha_x_s, alpha)
        beta = beta if model.beta_x_s is None else np.where(across, model.beta_x_s, beta)
    return np.asarray(np.where(n > 1, alpha + beta * np.maximum(n - 2.0, 0.0), 0.0))


def phases(
    model: Parametric | Tabular,
    gpus: ArrayLike,
    nodes: ArrayLike,
    local_batch: ArrayLike,
    clock: ArrayLike = 1.0,
    racks: ArrayLike = 1,
) -> tuple[Floats, Floats]:
    """Return C and X of the module's formula in seconds, or NaN without measurements."""
    if isinstance(model, Tabular):
        n, spread, batch = np.broadcast_arrays(
            *(np.asarray(x, dtype=float) for x in (gpus, nodes, local_batch))
        )
        table = table_of_model(model)
        cell = cells(table, np.zeros(n.shape, dtype=np.int64), n, spread)
        compute, exposed = measured_phases(table, cell, batch)
        return np.asarray(compute * slowdown(model.phi, clock)), exposed
    batch = np.asarray(local_batch, dtype=float)
    compute = (model.alpha_c_s + model.beta_c_s * batch) * slowdown(model.phi, clock)
    sync = sync_s(model, gpus, nodes, racks)
    # Scaled by the longer part: gamma up to 10 would overflow or underflow otherwise.
    longest = np.maximum(compute, sync)
    unit = np.where(longest > 0, longest, 1.0)
    joint = (compute / unit) ** model.gamma + (sync / unit) ** model.gamma
    whole = np.where(longest > 0, unit * joint ** (1.0 / model.gamma), 0.0)
    return np.asarray(compute), np.asarray(np.maximum(whole - compute, 0.0))


def plain_speed(
    profile: Profile, gpu_type: str, gpus: int, nodes: int, batch: float, racks: int = 1
) -> float:
    """Return samples per second at full clock in one pass, ``B / T_iter``, or 1 if rigid.

    This is `samples_per_s` of one configuration without the scaling of `phases`. Generated
    instances depend on its order of operations in their last digits.
    """
    model = model_of(profile, gpu_type)
    if not isinstance(model, Parametric):
        return 1.0
    compute = model.alpha_c_s + model.beta_c_s * batch / gpus
    sync = float(sync_s(model, gpus, nodes, racks))
    return float(batch / (compute**model.gamma + sync**model.gamma) ** (1.0 / model.gamma))


def fastest_step(profile: Profile, gpu_type: GpuType | str, at: Configuration) -> Step:
    """Return the iteration of each configuration with the fastest number of gradient passes.

    The local batch respects the profile's ``min_local_batch``, ``max_local_batch`` and memory. The
    GPU's memory counts only if the GPU is given as a `GpuType`, not as a name. Only `Parametric`
    models distinguish racks. An InputError is raised if the profile has no throughput model for the
    GPU type, or a model without steps.
    """
    model = model_of(profile, gpu_type)
    if isinstance(model, Rigid | Rated):
        kind = type(model).__name__.lower()
        raise InputError(f"profile {profile.name!r}", f"a {kind} profile", "one with iterations")
    n, nodes, batch, clock, racks = columns = at.columns()
    if isinstance(model, Tabular):
        only, each = np.zeros(n.size, dtype=np.int64), Configuration(*map(np.ravel, columns))
        step = measured_steps([profile], gpu_type, only, each)
        return Step(*(x.reshape(n.shape) for x in (step.seconds, step.sync_share, step.passes)))
    least, most = profile.min_local_batch, _most(profile, gpu_type)
    # T(m) does not fall with m for gamma >= 1 (Minkowski's inequality): fewest passes win.
    with np.errstate(divide="ignore"):
        passes = np.maximum(np.ceil(batch / (n * most) * (1 - ROUNDING)), 1.0)
    fits = np.isfinite(passes) & (batch / (n * passes) >= least * (1 - ROUNDING))
    passes = np.where(fits, passes, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return _step(passes, *phases(model, n, nodes, batch / (n * passes), clock, racks))


def measured_steps(
    profiles: Sequence[Profile], gpu_type: GpuType | str, which: Rows, at: Configuration
) -> Step:
    """Return the fastest iterations of X configurations, each with its profile's index in `which`.

    All profiles have a `Tabular` model of the GPU type. See `fastest_step` for the rest.
    """
    models = [model_of(profile, gpu_type) for profile in profiles]
    measured = [model for model in models if isinstance(model, Tabular)]
    tables = table_of_model(measured[0]) if len(models) == 1 else stacked(measured)
    limits = [
        (m.phi, p.min_local_batch, _most(p, gpu_type))
        for m, p in zip(measured, profiles, strict=True)
    ]
    phi, least, most = np.array(limits).T[:, which]
    gpus, nodes, batch, clock, _ = at.columns()
    cell, slow = cells(tables, which, gpus, nodes), slowdown(phi, clock)
    passes = fastest_passes(tables, cell, batch / gpus, slow, least, most)
    with np.errstate(invalid="ignore", divide="ignore"):
        compute, exposed = measured_phases(tables, cell, batch / (gpus * passes))
        return _step(passes, compute * slow, exposed)


def _step(passes: Floats, compute: Floats, exposed: Floats) -> Step:
    """Return the iteration with the given passes and phases, infeasible where `passes` is 0."""
    seconds = np.where(passes > 0, passes * compute + exposed, np.nan)
    return Step(seconds, np.asarray(exposed / seconds), passes)


def _most(profile: Profile, gpu_type: GpuType | str) -> float:
    """Return the largest local batch b that the profile and the GPU's memory allow.

    ``base + model + sample b`` GiB must fit into the memory. The result is 0 if the model alone
    does not fit.
    """
    most = float("inf") if profile.max_local_batch is None else profile.max_local_batch
    memory = profile.memory
    if memory is None or not isinstance(gpu_type, GpuType):
        return most
    free = gpu_type.memory_gib - memory.base_gib - memory.model_gib
    if free < 0:
        return 0.0
    return min(most, free / memory.sample_gib) if memory.sample_gib > 0 else most


def model_of(profile: Profile, gpu_type: GpuType | str) -> Throughput:
    """Return the profile's throughput model of a GPU type, or raise an InputError."""
    name = gpu_type.name if isinstance(gpu_type, GpuType) else gpu_type
    try:
        return profile.throughput[name]
    except KeyError:
        place = f"profile {profile.name!r}"
        known = ", ".join(profile.throughput) or "none"
        raise InputError(place, f"no throughput on {name!r}", f"one of: {known}") from None


def speed_and_share(
    profile: Profile, gpu_type: GpuType | str, at: Configuration
) -> tuple[Floats, Floats]:
    """Return samples per second ``B / T`` of the fastest step, and its share of syncing ``X / T``.

    Both are 0 where no step is feasible. A rigid profile gives 1.0 (seconds of work per second) and
    0. A `Rated` profile gives work per second.
    """
    model = model_of(profile, gpu_type)
    if isinstance(model, Rated):
        rate, _ = rates_and_watts(model, 0.0, at)
        return rate, np.zeros_like(rate)
    if isinstance(model, Rigid):
        shape = np.broadcast_shapes(*map(np.shape, at))
        return np.ones(shape), np.zeros(shape)
    return fastest_step(profile, gpu_type, at).speed_and_share(at.batch)


def samples_per_s(profile: Profile, gpu_type: GpuType | str, at: Configuration) -> Floats:
    """Return the samples per second of `speed_and_share`."""
    return speed_and_share(profile, gpu_type, at)[0]
