"""The statistical efficiency of large batches, from the gradient noise scale.

The efficiency of a sample in a global batch B relative to one in the base batch B0 is ::

    E(B) = (scale + B0) / (scale + B)

with the gradient noise scale (in samples) of the job at its present progress (McCandlish et al.
2018; Pollux, Qiao et al., OSDI 2021, section 3.1).
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ronda.instances.base import Floats
from ronda.instances.models.cache import per_record
from ronda.instances.profile import NoiseCurve, NoiseScale

Numbers = TypeVar("Numbers", float, Floats)


def efficiency(scale: Numbers, batch: Numbers, base_batch: float) -> Numbers:
    """Return E(B), at most 1 for batches not below the base batch; all arguments are in samples."""
    return (scale + base_batch) / (scale + batch)


def scale_at(noise: NoiseScale, batch: ArrayLike) -> Floats:
    """Return the noise scale at global batch sizes, linear between entries and constant outside."""
    if isinstance(batch, tuple) and batch == noise.batches:  # the usual case
        return np.array(noise.scale)
    return np.asarray(np.interp(np.asarray(batch, dtype=float), noise.batches, noise.scale))


def scales_at(noises: Sequence[NoiseScale], batches: tuple[float, ...]) -> Floats:
    """Return the noise scales at global batch sizes (see `scale_at`), shape (X, B)."""
    if all(len(noise.scale) == 1 for noise in noises):  # the same for all batches
        return np.array([noise.scale for noise in noises]).repeat(len(batches), axis=1)
    return np.array([scale_at(noise, batches) for noise in noises])


def efficiency_at(noise: NoiseScale, batch: float, base_batch: float) -> float:
    """Return E(B) of one batch at a given noise scale."""
    if batch in noise.batches:  # the usual case, much faster than interpolation
        return efficiency(noise.scale[noise.batches.index(batch)], batch, base_batch)
    return efficiency(float(scale_at(noise, batch)), batch, base_batch)


@per_record(maxsize=512)
def stages(curve: NoiseCurve) -> tuple[tuple[float, NoiseScale], ...]:
    """Return a curve's stages as pairs (work at the end of the stage, noise scale in it).

    The last stage has no end (infinity).
    """
    ends = (*curve.until[:-1], float("inf"))
    rows = (NoiseScale(batches=curve.batches, scale=row) for row in curve.scale)
    return tuple(zip(ends, rows, strict=True))


def noise_at(curve: NoiseCurve, done: float) -> NoiseScale:
    """Return the noise scale after `done` units of work."""
    stage = bisect_right(curve.until, done)
    return stages(curve)[min(stage, len(curve.until) - 1)][1]
