"""The data in AdaptDL's speed-up functions: a fitted model of steps, gradient noise and batches.

AdaptDL's scheduler and the simulators of Pollux and Sia pass ``SpeedupFunction`` objects that
contain a ``GoodputFunction`` (adaptdl/goodput.py). Its parameters are those of Pollux's model (OSDI
2021, section 3), which is ronda's `Parametric`.
"""

from typing import Any, NamedTuple

import numpy as np

from ronda.hosts.embedding.records import StepTime
from ronda.instances.models.efficiency import efficiency
from ronda.instances.models.throughput import phases
from ronda.instances.profile import Parametric

ROUNDING = 1e-8
BATCHES = 50
"""Number of global batches, in geometric steps, among which AdaptDL's jobs choose."""


class Goodput(NamedTuple):
    """The speed of a job on one GPU type, from its speed-up function.

    `noise` is the gradient noise scale in samples. Goodput counts in samples of the global batch
    `base`; `most` is the largest global batch. `low` and `high` limit the local batch of a pass,
    and `accumulates` says whether a step may have several passes.
    """

    model: Parametric
    noise: float
    base: float
    most: float
    low: float
    high: float
    accumulates: bool

    def tuned(self, nodes: int, gpus: int) -> tuple[float, float]:
        """Return the goodput and the local batch of a job that tunes its own batch on some GPUs.

        As in `GoodputFunction.optimize`, a single GPU accumulates to estimate its noise, or else
        keeps its base batch.
        """
        batch = np.geomspace(max(self.base, self.low * gpus), self.most, BATCHES)
        passes = np.ones(BATCHES)
        if self.accumulates:
            passes = np.ceil(batch / gpus / self.high - ROUNDING)
            alone = (gpus == 1) & (batch > self.base + ROUNDING)
            passes = np.where(alone, np.maximum(passes, 2), passes)
        local = np.ceil(batch / gpus / passes - ROUNDING)
        if gpus == 1 and not self.accumulates:
            local = np.full(BATCHES, self.base)
        compute_s, sync_s = phases(self.model, gpus, nodes, local)
        whole = gpus * local * passes
        worth = efficiency(np.asarray(self.noise), whole, self.base)
        rate = whole / (passes * compute_s + sync_s) * worth
        best = int(np.where((self.low <= local) & (local <= self.high), rate, 0.0).argmax())
        return float(rate[best]), float(local[best])

    def step(self, nodes: int, gpus: int, local_batch: float) -> StepTime:
        """Return the step time of the fitted model."""
        compute_s, sync_s = phases(self.model, gpus, nodes, local_batch)
        return StepTime(
            compute_s=float(compute_s), sync_s=float(sync_s), local_batch=float(local_batch)
        )


def goodput_of(speedup: Any) -> Goodput | None:
    """Return the data of a speed-up function; None if it is not one of AdaptDL."""
    of = getattr(speedup, "_goodput_fn", None)
    if of is None:
        return None
    alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r, gamma = map(float, of._perf_params)
    square, variance = map(float, of._grad_params)
    base = float(of._init_batch_size)
    most = max(base, float(speedup._max_batch_size or base))
    low, high = speedup._atomic_bsz_range or (None, None)
    return Goodput(
        model=Parametric(
            alpha_c_s=alpha_c,
            beta_c_s=beta_c,
            alpha_r_s=alpha_r,
            beta_r_s=beta_r,
            alpha_n_s=alpha_n,
            beta_n_s=beta_n,
            gamma=gamma,
        ),
        noise=max(0.0, variance / square * base) if square > 0 else 0.0,
        base=base,
        most=most,
        low=float(low or 1),
        high=float(high or most),
        accumulates=bool(speedup._accumulation),
    )


def first_batch(base: float, low: float, high: float, gpus: int) -> float:
    """Return the local batch with which AdaptDL starts a job without measurements."""
    local = np.ceil(max(base, low * gpus) / gpus)
    return float(np.ceil(local / np.ceil(local / high)))
