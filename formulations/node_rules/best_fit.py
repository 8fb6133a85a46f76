"""The numbers of nodes that slices of a job take in racks, by best fit."""

from collections.abc import Sequence

from ronda.instances.job import Slices


def in_racks(slices: Slices, nodes: int, free: Sequence[int]) -> list[int] | None:
    """Return how many nodes a job of `nodes` nodes takes in each rack, or None without room.

    Equal slices go to the rack that holds most of them, and the last ones to the tightest rack that
    holds them (Kueue's BestFit); listed slices to the tightest rack each, the largest first.
    Balanced slices take the fewest racks that share the nodes out evenly.
    """
    if slices.balanced:
        return _balanced(nodes, free)
    if slices.listed:
        return _listed(sorted(slices.listed, reverse=True), free, spread=slices.spread)
    size = slices.nodes or 1
    left, taken = nodes // size, [0] * len(free)
    room = [min(n // size, 1) if slices.spread else n // size for n in free]
    while left:
        most = max(room, default=0)
        if not most:
            return None
        wanted = min(most, left) if not slices.spread else 1
        rack = min((n, r) for r, n in enumerate(free) if room[r] >= wanted)[1]
        taken[rack] = wanted * size
        left, room[rack] = left - wanted, 0
    return taken


def _listed(sizes: Sequence[int], free: Sequence[int], *, spread: bool) -> list[int] | None:
    left, taken = list(free), [0] * len(free)
    for size in sizes:
        racks = [(n, r) for r, n in enumerate(left) if n >= size]
        if not racks:
            return None
        rack = min(racks)[1]
        taken[rack] += size
        left[rack] = -1 if spread else left[rack] - size
    return taken


def _balanced(nodes: int, free: Sequence[int]) -> list[int] | None:
    order = sorted(range(len(free)), key=lambda r: (free[r], r))
    for racks in range(1, len(free) + 1):
        each, more = divmod(nodes, racks)
        large = [r for r in order if free[r] > each][:more]
        small = [r for r in order if free[r] >= each and r not in large][: racks - more]
        if each and len(large) == more and len(small) == racks - more:
            taken = [0] * len(free)
            for r in large + small:
                taken[r] = each + (r in large)
            return taken
    return None


def kept(slices: Slices, counts: Sequence[int]) -> bool:
    """Return whether the numbers of nodes in racks, none of them 0, are those of slices."""
    number = sorted(counts, reverse=True)
    if slices.balanced:
        return number[0] - number[-1] <= 1
    if not slices.listed:
        size = slices.nodes or 1
        return all(n % size == 0 and (n == size or not slices.spread) for n in number)
    sizes = sorted(slices.listed, reverse=True)
    return number == sizes if slices.spread else _sums(sizes, number)


def _sums(sizes: Sequence[int], number: list[int]) -> bool:
    if not sizes:
        return not any(number)
    return any(
        _sums(sizes[1:], [n - sizes[0] * (r == k) for r, n in enumerate(number)])
        for k, room in enumerate(number)
        if room >= sizes[0]
    )
