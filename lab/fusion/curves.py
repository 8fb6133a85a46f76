"""The packaged curves of sharing, by application and GPU."""

from collections.abc import Mapping
from dataclasses import dataclass

from ronda.instances.errors import InputError
from ronda.instances.files.fits import fitted
from ronda.instances.models.memory import most_models
from ronda.instances.models.sharing import step_s
from ronda.instances.profile import Memory, Mode, Sharing

GIB = {"V100-16GB": 16.0, "RTX6000-24GB": 24.0, "A100-40GB": 40.0, "RTX3090-24GB": 24.0}
"""Memory of the GPUs that were measured."""


@dataclass(frozen=True, slots=True)
class Curves:
    """How an application shares a type of GPU."""

    gpu_type: str
    sharings: Mapping[Mode, Sharing]
    memory: Memory

    @property
    def alone_s(self) -> float:
        """A step of one model alone, in the unit of the measurements."""
        return step_s(self.sharings["exclusive"].time, 1)

    def most(self, mode: Mode) -> int:
        """Return k_max of a mode."""
        return most_models(self.memory, mode, GIB[self.gpu_type])


def curves(name: str, gpu_type: str) -> Curves:
    """Return the packaged curves of an application, as ``hfta-pointnet_cls-amp``, on a GPU."""
    found = [fit for fit in fitted(f"{name}-{gpu_type}-") if fit.gpu_type == gpu_type]
    memory = [fit.memory for fit in found if fit.memory is not None]
    sharings = {fit.sharing.mode: fit.sharing for fit in found if fit.sharing is not None}
    if not memory or "exclusive" not in sharings:
        raise InputError("curves", f"{name} on {gpu_type}", "an application that was measured")
    return Curves(gpu_type, sharings, memory[0])
