"""Sets of small numbers as the bits of one integer: quick to cut, to join and to search."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

_STRIDE = 1024
"""Length of the parts in which a large set is searched, so that time grows with its numbers."""

_PART = (1 << _STRIDE) - 1


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers in a set, ascending."""
    start = -1
    while mask:
        empty = lowest_bit(mask)
        mask >>= empty
        start += empty
        part = mask & _PART
        while part:
            lowest = part & -part
            yield start + lowest.bit_length()
            part ^= lowest
        mask >>= _STRIDE
        start += _STRIDE


def lowest_bit(mask: int) -> int:
    """Return the lowest number of a set that is not empty."""
    return (mask & -mask).bit_length() - 1


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
    if count == 1:
        return mask & -mask
    return bits_of(islice(bits(mask), count))


def positions_by(values: Sequence[int], keys: Iterable[int]) -> dict[int, int]:
    """Return for each key the set of positions in `values` where it stands."""
    masks = dict.fromkeys(keys, 0)
    for position, value in enumerate(values):
        masks[value] |= 1 << position
    return masks
