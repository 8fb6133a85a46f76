"""The division of a class into arrays of at most k_max members."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def first_fit(members: Sequence[T], most: int) -> list[Sequence[T]]:
    """Return full arrays and a last one with the rest, as HFHT cuts them."""
    return [members[at : at + most] for at in range(0, len(members), most)]


def balanced(members: Sequence[T], arrays: int) -> list[Sequence[T]]:
    """Return `arrays` arrays whose sizes differ by one at most, the larger ones first."""
    size, more = divmod(len(members), arrays)
    ends = [0]
    for array in range(arrays):
        ends.append(ends[-1] + size + (array < more))
    return [members[a:b] for a, b in pairwise(ends) if b > a]
