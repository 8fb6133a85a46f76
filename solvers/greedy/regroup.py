"""The regrouping of arrays on GPUs, with few disturbed jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


@dataclass
class OnGpu(Generic[T]):
    """The jobs of one GPU: jobs that stay on it, and jobs that join them.

    An array goes on if jobs only leave it. An array that a job joins starts again.
    """

    stay: list[T] = field(default_factory=list)
    join: list[T] = field(default_factory=list)

    @property
    def width(self) -> int:
        """The number of jobs on the GPU."""
        return len(self.stay) + len(self.join)


def regroup(
    kept: Sequence[Sequence[T]], free: Sequence[T], sizes: Sequence[int], most: int
) -> tuple[list[OnGpu[T]], list[T]]:
    """Return the jobs of each GPU, `kept` GPUs first, and the jobs that are left.

    `sizes` are the wanted widths of arrays, one per GPU, in descending order. `free` jobs go to
    empty GPUs first. If there are too few of them, members leave kept arrays that are too wide. If
    there are more, they join as few arrays as possible, the narrowest first, up to `most` jobs on a
    GPU.
    """
    cuts, loose = [OnGpu(list(members)) for members in kept], list(free)
    empty = [size for size in sizes[len(cuts) :] if size]
    for _ in range(sum(empty) - len(loose)):
        spare = [cut.width - size for cut, size in zip(cuts, sizes, strict=False)]
        if max(spare, default=0) <= 0:
            break
        loose.append(cuts[spare.index(max(spare))].stay.pop())
    new = []
    for size in empty:
        new.append(OnGpu([], loose[:size]))
        del loose[:size]
    while loose:
        room = [cut for cut in cuts if cut.width < most]
        if not room:
            break
        begun = [cut for cut in room if cut.join]
        cut = begun[0] if begun else min(room, key=lambda cut: cut.width)
        cut.join.append(loose.pop(0))
    return [cut for cut in (*cuts, *new) if cut.width], loose


def fastest_cut(speed: Sequence[float], jobs: int, gpus: int) -> tuple[int, ...]:
    """Return the numbers of jobs per GPU, in descending order, with the highest total speed.

    `speed` is the total speed of 1, 2, … jobs on a GPU. The method is dynamic programming over the
    GPUs. Jobs for which there is no room are left out.
    """
    total = min(jobs, gpus * len(speed))
    own = np.array([0.0, *speed])
    best, choice = np.full(total + 1, -np.inf), list[NDArray[np.int64]]()
    best[0] = 0.0
    for _ in range(gpus):
        tried = np.full((len(own), total + 1), -np.inf)
        for k in range(min(len(own), total + 1)):
            tried[k, k:] = best[: total + 1 - k] + own[k]
        choice.append(tried.argmax(axis=0))
        best = tried.max(axis=0)
    found, left = list[int](), total
    for chosen in reversed(choice):
        found.append(int(chosen[left]))
        left -= found[-1]
    return tuple(sorted(found, reverse=True))
