"""Arrays on some GPUs made from arrays on others, with few jobs disturbed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


@dataclass
class OnGpu(Generic[T]):
    """The jobs of one GPU: those that stay on it, and those that join them.

    An array that jobs only leave goes on as it is; one that somebody joins starts again.
    """

    stay: list[T] = field(default_factory=list)
    join: list[T] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Jobs of the GPU."""
        return len(self.stay) + len(self.join)


def regroup(
    kept: Sequence[Sequence[T]], free: Sequence[T], sizes: Sequence[int], most: int
) -> tuple[list[OnGpu[T]], list[T]]:
    """Return the jobs of each GPU, those `kept` first, and who is left.

    `sizes` are the widths that arrays should have, one for each GPU, the widest first. `free` jobs
    go to empty GPUs first; where they are too few for these, members leave kept arrays that are
    wider than they should be. Where there are more, they join the narrowest arrays, up to `most`
    on a GPU, as few arrays as can be.
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
    """Return how many jobs share each GPU, the most first, so that all together are fastest.

    `speed` is that of 1, 2, … jobs on a GPU. By dynamic programming over the GPUs; jobs beyond
    what they hold are left out.
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
