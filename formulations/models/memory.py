"""Whether a job fits a GPU's memory: ``m = base + k (model + sample b)`` in GiB.

k models are fused into one array, each with local batch b (the form of HFTA's memory curves; one
model is k = 1).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ronda.instances.profile import Memory


def memory_gib(memory: Memory, local_batch: ArrayLike, width: ArrayLike = 1) -> NDArray[np.float64]:
    """Return the memory of one GPU in GiB (broadcasts over local batches and widths)."""
    batch = np.asarray(local_batch, dtype=float)
    one = memory.model_gib + memory.sample_gib * batch
    return np.asarray(memory.base_gib + np.asarray(width) * one)


def max_local_batch(memory: Memory, gpu_gib: float, width: int = 1) -> float:
    """Return the largest local batch that fits `gpu_gib`.

    0.0 if not even the model fits, infinity if a sample takes no memory.
    """
    free = gpu_gib - memory.base_gib - width * memory.model_gib
    if free < 0:
        return 0.0
    return free / (width * memory.sample_gib) if memory.sample_gib > 0 else float("inf")
