"""What a sample is worth in a large batch: statistical efficiency from the gradient noise scale.

Efficiency of a sample in a global batch B against one in the base batch B0::

    E(B) = (scale + B0) / (scale + B)

with the gradient noise scale (in samples) of the job at its present progress (McCandlish et al.
2018; Pollux, Qiao et al., OSDI 2021, section 3.1).
"""

from bisect import bisect_right
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ronda.formulations.remembered import remembered
from ronda.instances.arrays import Floats
from ronda.instances.profile import NoiseCurve, NoiseScale

Numbers = TypeVar("Numbers", float, Floats)


def efficiency(scale: ArrayLike, batch: ArrayLike, base_batch: float) -> Floats:
    """Return E(B), at most 1 for batches from the base batch up; all in samples."""
    scales, batches = np.asarray(scale, dtype=float), np.asarray(batch, dtype=float)
    return np.asarray(_ratio(scales, batches, base_batch))


def _ratio(scale: Numbers, batch: Numbers, base_batch: float) -> Numbers:
    """Return E(B) of arrays, or of one batch at a fraction of the time."""
    return (scale + base_batch) / (scale + batch)


def scale_at(noise: NoiseScale, batch: ArrayLike) -> Floats:
    """Return the noise scale at global batch sizes: linear between entries, constant outside."""
    if isinstance(batch, tuple) and batch == noise.batches:  # most often
        return np.array(noise.scale)
    return np.asarray(np.interp(np.asarray(batch, dtype=float), noise.batches, noise.scale))


def worth(noise: NoiseScale, batch: float, base_batch: float) -> float:
    """Return E(B) of one batch at a noise scale."""
    if batch in noise.batches:  # most often
        scale = noise.scale[noise.batches.index(batch)]
    else:
        scale = float(np.interp(batch, noise.batches, noise.scale))
    return _ratio(scale, batch, base_batch)


def stages(curve: NoiseCurve) -> tuple[tuple[float, NoiseScale], ...]:
    """Return a curve's stages as pairs (work at which the stage ends, its noise scale).

    The last stage ends never (infinity). The same curve gives the same `NoiseScale` objects every
    time, so what depends on them can be remembered.
    """
    return remembered(curve, "stages", lambda: _stages(curve))


def _stages(curve: NoiseCurve) -> tuple[tuple[float, NoiseScale], ...]:
    ends = (*curve.until[:-1], float("inf"))
    rows = (NoiseScale(batches=curve.batches, scale=row) for row in curve.scale)
    return tuple(zip(ends, rows, strict=True))


def noise_at(curve: NoiseCurve, done: float) -> NoiseScale:
    """Return the noise scale after `done` units of work; a stage begins where the last one ends."""
    stage = bisect_right(curve.until, done)
    return stages(curve)[min(stage, len(curve.until) - 1)][1]
