"""The GPUs that a job takes from others: its own, and those that lose value while it runs.

**GPUs that no job can use.** A gang that leaves 6 of 16 GPUs, where all other jobs ask for 8,
displaces 16. Each live job can run on certain numbers of GPUs. Let U be the most GPUs that all jobs
can use together on N, and u the most that the other jobs can use on the N - n that one job leaves.
That job displaces U - u, which is n where narrow or elastic jobs fill the rest, or where the GPUs
are enough for all jobs.

**GPUs that earn little.** Perhaps only a job of many hours fits next to a short job of 8 GPUs.
Until the long job has run, gangs of 16 wait as if the short job held all 16. So the GPUs that
others fill next to a job count as the share by which others earn less on each than the job itself.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.clock import checkpoint


def displaced(
    gpus: int, rigid: Iterable[int], elastic: Iterable[tuple[int, ...]]
) -> dict[int, int]:
    """Return how many of `gpus` GPUs a rigid job displaces, per width of rigid jobs.

    `rigid` are the widths of the rigid jobs, each at most `gpus`; `elastic` are the possible widths
    of each other job.
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
    """Return the GPUs on which other jobs earn less than a rigid job, per width of rigid jobs.

    Each GPU counts as the missing share of its earnings. Jobs ask for `least` to `most` GPUs and
    earn `worth` on each of `most`, all of shape (J,). Other jobs fill the GPUs that a job leaves,
    best first. The middle job of each width represents all jobs of that width, so that these keep
    the order of their times. If the GPUs are enough for all jobs, nothing is missing.
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
    """Return the GPUs of each job if jobs fill `left` GPUs in order, shape (J,); skip wide jobs."""
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
    """Return, as bits, the sums of widths that any subset of the elastic jobs can have."""
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
    """Return the given sums, as bits, with the sums that up to `counts` jobs of each width add."""
    for width, count in sorted(counts.items()):
        step, left = 1, min(count, every.bit_length() // width)
        while left > 0:  # any number of jobs is a sum of the steps 1, 2, 4, ..., rest
            step = min(step, left)
            sums |= sums << step * width & every
            left, step = left - step, 2 * step
    return sums
