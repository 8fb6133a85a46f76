"""How many GPUs a job takes from others: its own, and those that are worth less next to it.

**GPUs that nobody can use.** A gang that leaves 6 of 16 GPUs, where all others ask for 8, takes 16.
Of the live jobs' GPUs, as each asks for one of some numbers, let U be the most that fit on N GPUs
together, and u of those without the job the most that fit on the N - n that it leaves: it takes
U - u, which is n where narrow or elastic jobs fill what is left, or where GPUs suffice for all.

**GPUs that others make little of.** Beside a short job of 8 GPUs only one of many hours may fit:
until it has run, gangs of 16 wait as if it held all 16. So the GPUs that others fill next to a job
count with the share by which they earn less on each than the job itself.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from ronda.instances.arrays import Floats
from ronda.instances.clock import checkpoint


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


def outdone(gpus: int, least: Floats, most: Floats, worth: Floats) -> dict[int, float]:
    """Return by width the GPUs on which others earn less next to a rigid job than it does.

    Each counts with the share that is missing. Jobs ask for `least` to `most` GPUs and earn `worth`
    on each of `most`, all (J,). Others fill what a job leaves, best first; the middle job of each
    width stands for all, so that they stay in the order of their times. Where GPUs suffice for all
    jobs nothing is missed.
    """
    if least.sum() <= gpus:
        return dict.fromkeys(least[least == most].astype(int).tolist(), 0.0)
    order = np.argsort(-worth, kind="stable")
    least, most, worth = least[order], most[order], worth[order]
    found = {}
    for width in np.unique(least[least == most]).tolist():
        checkpoint()
        same = np.flatnonzero((least == width) & (most == width))
        middle = same[(len(same) - 1) // 2]
        others = np.arange(len(order)) != middle
        filled = _filled(least[others], most[others], gpus - width)
        missing = np.maximum(1.0 - worth[others] / worth[middle], 0.0)
        found[int(width)] = float(filled @ missing)
    return found


def _filled(least: Floats, most: Floats, left: float) -> Floats:
    """Return (J,) the GPUs of jobs that fill what is left in order; who does not fit is passed."""
    filled, first = np.zeros(len(least)), 0
    while left > 0:
        fits = first + np.flatnonzero(least[first:] <= left)
        used = np.add.accumulate(most[fits])
        whole = int(np.searchsorted(used, left, "right"))
        filled[fits[:whole]] = most[fits[:whole]]
        if whole == len(fits):
            break
        left -= used[whole - 1] if whole else 0.0
        first = fits[whole]  # too wide for what is left, unless it is elastic
        if least[first] <= left:
            filled[first], left = left, 0.0
        first += 1
    return filled


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
    """Return the sums there are, and those that some jobs of each width, by `counts`, add."""
    for width, count in sorted(counts.items()):
        step, left = 1, min(count, every.bit_length() // width)
        while left > 0:  # any number of jobs is a sum of the steps 1, 2, 4, ..., rest
            step = min(step, left)
            sums |= sums << step * width & every
            left, step = left - step, 2 * step
    return sums
