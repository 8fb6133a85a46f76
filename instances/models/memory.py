"""The memory of k models, ``m(k) = b + k p`` if they are fused, and the most that fit.

A process without models needs b, and each model needs p (HFTA, MLSys 2021). Each of several
processes needs its own b.
"""

from ronda.instances.profile import Memory, Mode
from ronda.instances.violation import ROUNDING

SLICES = {1: 8, 2: 4, 3: 2, 4: 1, 5: 1, 6: 1, 7: 1}
"""The eighths of an A100's memory in the smallest of k MIG slices (HFHT's profiles)."""


def need_gib(memory: Memory, mode: Mode, models: int, local_batch: float = 0.0) -> float:
    """Return m(k) in GiB: b + k p if fused, k (b + p) if packed or taking turns.

    With slices the result is the memory of one slice, b + p.
    """
    own = memory.model_gib + memory.sample_gib * local_batch
    if mode == "fused":
        return memory.base_gib + models * own
    processes = 1 if mode == "slices" else models
    return processes * (memory.base_gib + own)


def most_models(
    memory: Memory, mode: Mode, gpu_gib: float, local_batch: float = 0.0, limit: int = 1024
) -> int:
    """Return k_max, the most models that fit into a GPU's memory, or 0 if none does.

    `limit` bounds the result if models need no memory.
    """
    if mode == "exclusive":
        limit = 1

    def fits(models: int) -> bool:
        room = gpu_gib
        if mode == "slices":
            room *= SLICES.get(models, 0) / 8
        return need_gib(memory, mode, models, local_batch) <= room * (1 + ROUNDING)

    best = 0
    for models in range(1, limit + 1):
        if not fits(models):
            break
        best = models
    return best
