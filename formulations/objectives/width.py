"""How many GPUs a job takes from others: its own, and those that nobody can use beside it.

A gang that leaves 6 of 16 GPUs, where all others ask for 8, takes 16. Of the live jobs' GPUs, as
each asks for one of some numbers, let U be the most that fit on N GPUs together, and u of those
without the job the most that fit on the N - n that it leaves: it takes U - u, which is n where
narrow or elastic jobs fill what is left, or where GPUs suffice for all.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from ronda.formulations.clock import checkpoint


def taken(gpus: int, rigid: Iterable[int], elastic: Iterable[tuple[int, ...]]) -> dict[int, int]:
    """Return by width how many of `gpus` GPUs a rigid job of it takes from others.

    `rigid` are the widths of such jobs, at most `gpus`; `elastic` the widths of each other job.
    """
    every, counts = (1 << gpus + 1) - 1, Counter(rigid)
    filled = _with_elastic(every, elastic)
    most = _with_rigid(filled, counts, every).bit_length() - 1
    found = {}
    for width in counts:
        checkpoint()
        left = every >> width
        beside = _with_rigid(filled & left, counts - Counter((width,)), left)
        found[width] = most - (beside.bit_length() - 1)
    return found


def _with_elastic(every: int, elastic: Iterable[tuple[int, ...]]) -> int:
    """Return the sums that one width each of some of the jobs can have, as bits."""
    sums = 1
    for widths, count in Counter(elastic).items():
        for _ in range(count):
            checkpoint()
            before = sums
            for width in widths:
                sums |= before << width & every
            if sums == before:
                break
    return sums


def _with_rigid(sums: int, counts: Mapping[int, int], every: int) -> int:
    """Return the sums that some of so many jobs of each width can add to those there are."""
    for width, count in sorted(counts.items()):
        step, left = 1, min(count, every.bit_length() // width)
        while left > 0:  # any number of jobs is a sum of the steps 1, 2, 4, ..., rest
            step = min(step, left)
            sums |= sums << step * width & every
            left, step = left - step, 2 * step
    return sums
