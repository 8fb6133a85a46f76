"""Where parts of a GPU fit: the arithmetic of memory slices on one GPU."""

from collections import Counter
from functools import lru_cache

from ronda.instances.cluster import PartProfile, Parts

On = tuple[str, int]
"""A part on a GPU: the name of its profile, and its first memory slice."""


@lru_cache(maxsize=1 << 14)
def arranged(
    parts: Parts, names: tuple[str, ...], beside: tuple[On, ...] = ()
) -> tuple[int, ...] | None:
    """Return the starts of more parts on a GPU that keep the largest further parts possible.

    Return None if the parts, given by the names of their profiles, do not fit `beside` others.
    """
    profiles = {p.name: p for p in parts.profiles}
    asked = sorted(range(len(names)), key=lambda i: (-profiles[names[i]].memory, names[i]))
    best: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    def place(k: int, taken: int, starts: tuple[int, ...]) -> None:
        nonlocal best
        if k == len(asked):
            left = room(parts, taken)
            if best is None or left > best[0]:
                best = left, starts
            return
        name = names[asked[k]]
        for start in profiles[name].starts:
            alike = k and name == names[asked[k - 1]] and start < starts[-1]
            if not alike and not (own := bits(profiles[name], start)) & taken:
                place(k + 1, taken | own, (*starts, start))

    every = Counter((*names, *(name for name, _ in beside)))
    if all(times <= profiles[name].most for name, times in every.items()):
        place(0, sum(bits(profiles[name], start) for name, start in beside), ())
    if best is None:
        return None
    at = dict(zip(asked, best[1], strict=True))
    return tuple(at[i] for i in range(len(names)))


def bits(profile: PartProfile, start: int) -> int:
    """Return the memory slices of a part as bits."""
    return ((1 << profile.memory) - 1) << start


@lru_cache(maxsize=1 << 14)
def room(parts: Parts, taken: int) -> tuple[int, ...]:
    """Return at how many starts each profile still fits beside `taken` slices, largest first."""
    ranked = sorted(parts.profiles, key=lambda p: (-p.memory, -p.compute))
    return tuple(sum(not bits(p, start) & taken for start in p.starts) for p in ranked)
