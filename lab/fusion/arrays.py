"""A batch of repetitive jobs: what arrays there may be, and what an arrangement of them costs.

Jobs of one fusion class are alike: as many steps each. An array ends with all its members; arrays
of a GPU run one after another.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ronda.instances.errors import InputError
from ronda.instances.models.memory import most_models
from ronda.instances.models.sharing import step_s
from ronda.instances.profile import MeasuredTime, Memory, Mode, Sharing

Objective = Literal["makespan", "gpu-time", "mean-jct"]
"""When the last job ends; seconds of all GPUs; when jobs end in the mean."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The jobs of one fusion class, and how they may share each type of GPU."""

    name: str
    jobs: int
    steps: float
    sharings: Mapping[str, tuple[Sharing, ...]]
    memory: Mapping[str, Memory]


@dataclass(frozen=True, slots=True)
class FusionCase:
    """Batches that are all there now, and idle GPUs by type: how many, and the GiB of each."""

    batches: tuple[Batch, ...]
    gpus: Mapping[str, int]
    gpu_gib: Mapping[str, float]

    @property
    def jobs(self) -> int:
        """Jobs of all batches."""
        return sum(batch.jobs for batch in self.batches)


@dataclass(frozen=True, slots=True)
class Array:
    """k models of a batch on one GPU of a type: the fastest mode, and its seconds to the end."""

    batch: int
    gpu_type: str
    mode: Mode
    models: int
    time_s: float


def arrays_of(case: FusionCase) -> tuple[Array, ...]:
    """Return every array that fits a GPU, in the fastest mode for its batch, GPU and k.

    Slower modes are left out: they hold the same GPU for longer and serve the same jobs.

    Raises
    ------
    InputError
        If not even one job of a batch fits a GPU.
    """
    best: dict[tuple[int, str, int], Array] = {}
    for index, batch in enumerate(case.batches):
        for gpu, sharings in batch.sharings.items():
            for sharing in sharings if case.gpus.get(gpu) else ():
                for models in _widths(case, batch, gpu, sharing):
                    time_s = batch.steps * step_s(sharing.time, models)
                    found = Array(index, gpu, sharing.mode, models, time_s)
                    known = best.setdefault((index, gpu, models), found)
                    if time_s < known.time_s:
                        best[index, gpu, models] = found
        if all(key[0] != index for key in best):
            found_gpus = ", ".join(case.gpus)
            raise InputError(f"batch {batch.name}", f"no array that fits {found_gpus}", "one")
    return tuple(best.values())


def _widths(case: FusionCase, batch: Batch, gpu: str, sharing: Sharing) -> range:
    most = most_models(batch.memory[gpu], sharing.mode, case.gpu_gib[gpu], limit=batch.jobs)
    if isinstance(sharing.time, MeasuredTime):
        known = sharing.time.models
        return range(known[0], min(most, known[-1]) + 1)
    return range(1, most + 1)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The arrays of each GPU, in the order in which they run."""

    case: FusionCase
    gpus: tuple[tuple[Array, ...], ...]

    @property
    def makespan_s(self) -> float:
        """When the last array ends."""
        return max(sum(a.time_s for a in gpu) for gpu in self.gpus)

    @property
    def gpu_s(self) -> float:
        """Seconds of all GPUs together."""
        return sum(a.time_s for gpu in self.gpus for a in gpu)

    @property
    def mean_jct_s(self) -> float:
        """When jobs end, in the mean."""
        total = 0.0
        for gpu in self.gpus:
            ends = 0.0
            for array in gpu:
                ends += array.time_s
                total += array.models * ends
        return total / self.case.jobs

    def value(self, objective: Objective) -> float:
        """Return what an objective makes of it, in seconds."""
        by_name = {
            "makespan": self.makespan_s,
            "gpu-time": self.gpu_s,
            "mean-jct": self.mean_jct_s,
        }
        return by_name[objective]

    def served(self) -> tuple[int, ...]:
        """Return the jobs of each batch that are in an array."""
        found = Counter[int]()
        for gpu in self.gpus:
            for array in gpu:
                found[array.batch] += array.models
        return tuple(found[index] for index in range(len(self.case.batches)))

    def modes(self) -> dict[tuple[str, Mode, int], int]:
        """Return how many arrays there are of each batch's name, mode and k."""
        return dict(
            Counter(
                (self.case.batches[a.batch].name, a.mode, a.models)
                for gpu in self.gpus
                for a in gpu
            )
        )


def in_order(gpu: Iterable[Array]) -> tuple[Array, ...]:
    """Return arrays by seconds for each member, the fewest first (Smith's rule): least mean JCT."""
    return tuple(sorted(gpu, key=lambda a: (a.time_s / a.models, a.batch, a.models)))
