"""Sets of small numbers as the bits of one integer: quick to cut, to join and to search."""

from collections.abc import Iterable, Iterator, Sequence


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers in a set, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def bits_of(numbers: Iterable[int]) -> int:
    """Return the set of some numbers."""
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


def lowest_bits(mask: int, count: int) -> int:
    """Return the `count` lowest numbers of a set that has at least as many."""
    if mask.bit_count() == count:
        return mask
    chosen = 0
    for _ in range(count):
        lowest = mask & -mask
        chosen |= lowest
        mask ^= lowest
    return chosen


def positions_by(values: Sequence[int], keys: Iterable[int]) -> dict[int, int]:
    """Return for each key the set of positions in `values` where it stands."""
    masks = dict.fromkeys(keys, 0)
    for position, value in enumerate(values):
        masks[value] |= 1 << position
    return masks
