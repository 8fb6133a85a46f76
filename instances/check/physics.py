"""The checker's own arithmetic of speed, power and statistical efficiency.

This module is written from the docstrings of `ronda.instances.profile` and shares nothing with the
solvers' models, so that an error in either shows up as a difference.
"""

from bisect import bisect_right
from functools import cached_property
from math import ceil, floor, inf
from typing import NamedTuple

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.cluster import GpuType
from ronda.instances.profile import (
    Memory,
    Parametric,
    Profile,
    Rated,
    Rigid,
    Tabular,
)
from ronda.instances.violation import Fault

ROUNDING = 1e-9
"""The relative rounding error that a comparison of a local batch with a limit allows."""


class Pace(NamedTuple):
    """The pace of an option: its samples per second, share of synchronisation and local batch."""

    samples_per_s: float
    sync_share: float
    local_batch: float = 0.0


class MeasuredSteps(NamedTuple):
    """The M measurements of one (gpus, nodes): local batches, ascending, with their times."""

    local_batch: Floats
    step_s: Floats
    sync_s: Floats


class Physics:
    """The physics of one profile on one GPU type that the profile has a throughput for."""

    def __init__(self, profile: Profile, gpu_type: GpuType) -> None:
        self.profile, self.gpu_type = profile, gpu_type
        self.model = profile.throughput[gpu_type.name]

    def pace(
        self, gpus: int, nodes: int, batch: float, clock: float, racks: int = 1
    ) -> Pace | Fault:
        """Return the pace of an option, or the fault that keeps it from running.

        A step of global batch B on n GPUs makes p passes (p - 1 gradient accumulations) of local
        batch ``b = B/(n p)``. The local batch must be within the profile's limits, fit into memory
        and, for a table, lie in the measured range. The fastest such p counts (the smallest for
        `Parametric`, as more passes never help with gamma >= 1). With ``f = phi/s + 1 - phi`` at
        clock s::

            Tabular     T = p f (step - sync) + sync           exposed sync = sync
            Parametric  T = T_iter + (p - 1) f T_grad          exposed sync = T_iter - f T_grad
        """
        model = self.model
        if isinstance(model, Rigid):
            return Pace(1.0, 0.0)
        if isinstance(model, Rated):
            told = self._told.get((gpus, nodes, batch, clock))
            if told is None:
                how = f"{gpus} GPUs over {nodes} nodes, batch {batch:g}, clock {clock:g}"
                return Fault("options", f"no rate was handed over for {how}")
            return Pace(told[0], 0.0)
        low, high = self.profile.min_local_batch, self.profile.max_local_batch or inf
        measured = None
        if isinstance(model, Tabular):
            measured = self._measured.get((gpus, nodes))
            if measured is None:
                return Fault("options", f"speed on {gpus} GPUs over {nodes} nodes is not measured")
            low = max(low, float(measured.local_batch[0]))
            high = min(high, float(measured.local_batch[-1]))
        share = batch / gpus
        if not _passes(share, low, high):
            return Fault(
                "local-batch",
                f"batch {batch:g} on {gpus} GPUs cannot be cut into passes of {low:g} to {high:g}",
            )
        passes = _passes(share, low, min(high, self._fits))
        if not passes:
            return Fault(
                "memory",
                f"batch {batch:g} on {gpus} GPUs needs more than the "
                f"{self.gpu_type.memory_gib:g} GiB of {self.gpu_type.name}",
            )
        if isinstance(model, Parametric):
            return _parametric(model, gpus, (nodes, racks), batch, clock, passes[0])
        assert measured is not None
        return _tabular(model, measured, gpus, batch, clock, passes)

    def told_w(self, gpus: int, nodes: int, batch: float, clock: float) -> float | None:
        """Return the watts of all the job's GPUs in a `Rated` profile, or None."""
        if not isinstance(self.model, Rated):
            return None
        return self._told[gpus, nodes, batch, clock][1]

    def busy_w(self, gpus: int, clock: float, sync_share: float) -> float:
        """Return the power in watts of all the job's GPUs while it progresses."""
        curve = self.profile.power.get(self.gpu_type.name)
        if curve is None:
            return gpus * self.gpu_type.idle_w
        above = max(clock**3 - curve.s0**3, 0.0)
        computing_w = curve.a_w + curve.b_w * min(clock, curve.s0) + curve.c_w * above
        if curve.sync_w is None:
            return gpus * computing_w
        return gpus * (computing_w * (1 - sync_share) + curve.sync_w * sync_share)

    def efficiency(
        self, batch: float, batches: tuple[float, ...] | None, scale: tuple[float, ...] | None
    ) -> float:
        """Return the statistical efficiency of a global batch, ``(scale + B0)/(scale + B)``.

        The noise scale is given per batch (linear between entries, constant outside). Every sample
        counts in full if the noise scale is unknown, if the job is rigid, or if its profile is
        `Rated`, as those rates include the efficiency.
        """
        if batches is None or scale is None or isinstance(self.model, Rigid | Rated):
            return 1.0
        noise = _between(batch, batches, scale)
        return (noise + self.profile.base_batch) / (noise + batch)

    @cached_property
    def _fits(self) -> float:
        """Return the largest local batch that fits into memory (negative if none does)."""
        need: Memory | None = self.profile.memory
        if need is None:
            return inf
        left = self.gpu_type.memory_gib - need.base_gib - need.model_gib
        if left < -ROUNDING * self.gpu_type.memory_gib:
            return -1.0
        return left / need.sample_gib if need.sample_gib > 0 else inf

    @cached_property
    def _told(self) -> dict[tuple[int, int, float, float], tuple[float, float]]:
        table = self.model
        assert isinstance(table, Rated)
        idle_w = self.gpu_type.idle_w
        watts = table.power_w or [n * idle_w for n in table.gpus]
        ways = zip(table.gpus, table.nodes, table.batch, table.clock, strict=True)
        return dict(zip(ways, zip(table.rate, watts, strict=True), strict=True))

    @cached_property
    def _measured(self) -> dict[tuple[int, int], MeasuredSteps]:
        table = self.model
        assert isinstance(table, Tabular)
        columns = (table.gpus, table.nodes, table.local_batch, table.step_s, table.sync_s)
        rows = np.column_stack(columns)
        rows = rows[np.lexsort(rows[:, 2::-1].T)]
        starts = np.flatnonzero((np.diff(rows[:, :2], axis=0) != 0).any(axis=1)) + 1
        found = {}
        for own in np.split(rows, starts):
            found[int(own[0, 0]), int(own[0, 1])] = MeasuredSteps(*own[:, 2:].T)
        return found


def _between(x: float, xs: tuple[float, ...], ys: tuple[float, ...]) -> float:
    k = bisect_right(xs, x)
    if k == 0 or k == len(xs):
        return ys[max(0, k - 1)]
    weight = (x - xs[k - 1]) / (xs[k] - xs[k - 1])
    return ys[k - 1] * (1 - weight) + ys[k] * weight


def _passes(share: float, low: float, high: float) -> range:
    """Return the numbers of passes p, ascending, with ``low <= share/p <= high``.

    Only the smallest number is returned if there is no lower limit (0).
    """
    if not high > 0:
        return range(0)
    first = max(1, ceil(share / high * (1 - ROUNDING)))
    last = floor(share / low * (1 + ROUNDING)) if low > 0 else first
    return range(first, last + 1)


def _slowdown(phi: float, clock: float) -> float:
    return phi / clock + 1 - phi


def _tabular(
    table: Tabular, rows: MeasuredSteps, gpus: int, batch: float, clock: float, passes: range
) -> Pace:
    count = np.arange(passes.start, passes.stop)
    local = batch / (gpus * count)
    step = np.interp(local, rows.local_batch, rows.step_s)
    sync = np.interp(local, rows.local_batch, rows.sync_s)
    total = count * _slowdown(table.phi, clock) * (step - sync) + sync
    best = int(np.argmin(total))
    return Pace(batch / float(total[best]), float(sync[best] / total[best]), float(local[best]))


def _parametric(
    model: Parametric, gpus: int, reach: tuple[int, int], batch: float, clock: float, passes: int
) -> Pace | Fault:
    """Return the pace that the fitted model gives; `reach` is the number of nodes and of racks."""
    nodes, racks = reach
    alpha, beta = model.alpha_n_s, model.beta_n_s
    if racks > 1:
        alpha = alpha if model.alpha_x_s is None else model.alpha_x_s
        beta = beta if model.beta_x_s is None else model.beta_x_s
    local = batch / (gpus * passes)
    grad = (model.alpha_c_s + model.beta_c_s * local) * _slowdown(model.phi, clock)
    if gpus == 1:
        sync = 0.0
    elif nodes == 1:
        sync = model.alpha_r_s + model.beta_r_s * (gpus - 2)
    else:
        sync = alpha + beta * (gpus - 2)
    longer = max(grad, sync)
    if longer == 0:
        return Fault("options", "the profile says that a step takes no time at all")
    g = model.gamma
    # Scaled by the longer part, so that no power underflows.
    once = longer * ((grad / longer) ** g + (sync / longer) ** g) ** (1 / g)
    total = once + (passes - 1) * grad
    return Pace(batch / total, (once - grad) / total, local)
