"""How much memory k models need, and how many fit: ``m(k) = b + k p`` if they are fused.

b is what a process needs whatever it runs, p what each model adds (HFTA, MLSys 2021). Processes
side by side need b each.
"""

from ronda.instances.profile import Memory, Mode
from ronda.instances.violation import ROUNDING

SLICES = {1: 8, 2: 4, 3: 2, 4: 1, 5: 1, 6: 1, 7: 1}
"""Eighths of an A100's memory that the smallest of k MIG slices has (HFHT's profiles)."""


def need_gib(memory: Memory, mode: Mode, models: int, local_batch: float = 0.0) -> float:
    """Return m(k) in GiB: b + k p fused, k (b + p) packed or by turns.

    For slices it is what each slice must hold, b + p.
    """
    own = memory.model_gib + memory.sample_gib * local_batch
    if mode == "fused":
        return memory.base_gib + models * own
    processes = 1 if mode == "slices" else models
    return processes * (memory.base_gib + own)


def most_models(
    memory: Memory, mode: Mode, gpu_gib: float, local_batch: float = 0.0, limit: int = 1024
) -> int:
    """Return k_max, the most models that fit a GPU; 0 if not even one does.

    `limit` bounds it where models need nothing.
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
