"""The step from an allocation to a genome with packed jobs in which few GPUs change owner.

It is the dynamic programme of the artifact (src/scheduler.py, "approximate Levenshtein distance")::

    f[i, k] = least number of occupied genes that change owner if k jobs fill the first i genes
            = min(f[i - 1, k],  min over j of f[i - c_j, k - 1] + changed(j, i - c_j, i))

where c_j is the number of GPUs of job j, changed(j, h, i) counts the genes from h to i - 1 that
another job holds now, and j must not be on the path kept for (i - c_j, k - 1). Only one path is
kept for each (i, k), so this is a heuristic: it may miss the least number and may even find no
complete path. If the artifact's earlier rule (jobs in the order of the deployed genome, then the
others) does better, its result is used.

P genomes are made together. The K jobs with GPUs in each genome are numbered 0 .. K - 1 (`slots`).
`job` (P, K) is their number in the subproblem, and `size` (P, K) is their number of GPUs, 0 if a
genome has fewer jobs.
"""

from functools import lru_cache

import numpy as np

from ronda.instances.base import Floats, Ints, Mask
from ronda.instances.clock import checkpoint
from ronda.systems.ones.genome import IDLE

WORD = 64
"""Number of bits in a word; each bit says whether a job is on the path."""


def reorder(allocations: Ints, deployed: Ints) -> Ints:
    """Return packed genomes of allocations (P, J), close to the deployed one (C,), shape (P, C)."""
    known = _remembered(deployed.tobytes())
    if len(known) > 512:
        known.clear()
    keys = [row.tobytes() for row in allocations]
    unknown = {key: row for key, row in zip(keys, allocations, strict=True) if key not in known}
    if unknown:
        fresh, names = np.stack(list(unknown.values())), list(unknown)
        slots = int((fresh > 0).sum(axis=1).max(initial=0)) + 1
        # The largest array of the programme has at most 3,000,000 entries.
        part = max(1, 3_000_000 // ((len(deployed) + 1) * slots))
        for k in range(0, len(fresh), part):
            few = fresh[k : k + part]
            plain, (packed, complete) = in_order(few, deployed), _programme(few, deployed)
            better = complete & (moves(packed, deployed) <= moves(plain, deployed))
            made = np.where(better[:, None], packed, plain)
            known.update(zip(names[k : k + part], made, strict=True))
    return np.stack([known[key] for key in keys])


@lru_cache(maxsize=4)
def _remembered(deployed: bytes) -> dict[bytes, Ints]:
    """Return a cache of genomes made for a deployed genome; most of a population stays the same."""
    return {}


def moves(genomes: Ints, deployed: Ints) -> Ints:
    """Return the number of genes that go from one job to another, shape (P,)."""
    return np.asarray(((deployed != IDLE) & (genomes != IDLE) & (genomes != deployed)).sum(axis=1))


def in_order(allocations: Ints, deployed: Ints) -> Ints:
    """Return genomes packed from the left in the deployed order, then by number, shape (P, C)."""
    jobs, capacity = allocations.shape[1], len(deployed)
    first = np.full(jobs, capacity)
    held, at = np.unique(deployed[deployed != IDLE], return_index=True)
    first[held] = at
    order = np.argsort(first, kind="stable")
    genomes = np.full((len(allocations), capacity), IDLE)
    for row, gpus in zip(genomes, allocations[:, order], strict=True):
        packed = np.repeat(order, gpus)
        row[: len(packed)] = packed
    return genomes


def _programme(allocations: Ints, deployed: Ints) -> tuple[Ints, Mask]:
    """Return genomes (P, C) by the dynamic programme, and whether a path is complete (P,)."""
    capacity, rows = len(deployed), np.arange(len(allocations))
    number = (allocations > 0).sum(axis=1)
    slots = int(number.max(initial=0))
    job = np.argsort(allocations == 0, axis=1, kind="stable")[:, :slots]
    size = np.take_along_axis(allocations, job, axis=1)
    changed = _changed(job, size, deployed)
    # The first i genes of any genome hold at most as many jobs as fit, the smallest ones first, and
    # at least those that do not fit into the other genes.
    genes = np.arange(capacity + 1)
    ordered = np.sort(np.where(size > 0, size, capacity + 1), axis=1).cumsum(axis=1)
    fit = (ordered[:, None, :] <= genes[:, None]).sum(axis=2)
    left = number[:, None] - fit[:, ::-1]
    least, most = np.maximum(left.min(axis=0), 0), fit.max(axis=0)
    value = np.full((len(rows), capacity + 1, slots + 1), np.inf)
    value[:, :, 0] = 0.0
    each = np.arange(slots)
    word, bit = each // WORD, np.left_shift(np.uint64(1), (each % WORD).astype(np.uint64))
    used = np.zeros((len(rows), capacity + 1, slots + 1, slots // WORD + 1), dtype=np.uint64)
    taken = np.full((len(rows), capacity + 1, slots + 1), IDLE)
    at = rows[:, None]
    for i in range(1, capacity + 1):
        checkpoint()
        value[:, i], used[:, i] = value[:, i - 1], used[:, i - 1]
        low, high = (
            max(int(least[i]) - 1, 0),
            int(most[i]),
        )  # jobs before the job that ends at i
        if low >= high:
            continue
        before = i - size
        possible = (size > 0) & (before >= 0)
        before = np.where(possible, before, 0)
        total = value[at, before, low:high]
        total += np.where(possible, changed[:, :, i], np.inf)[:, :, None]
        total[(used[at, before, low:high, word] & bit[:, None]) != 0] = np.inf
        chosen = total.argmin(axis=1)
        cost = np.take_along_axis(total, chosen[:, None], axis=1)[:, 0]
        row, k = np.nonzero(cost < value[:, i, low + 1 : high + 1])
        j, before_j = chosen[row, k], before[row, chosen[row, k]]
        k += low
        value[row, i, k + 1] = cost[row, k - low]
        used[row, i, k + 1] = used[row, before_j, k]
        used[row, i, k + 1, word[j]] |= bit[j]
        taken[row, i, k + 1] = j
    complete = np.isfinite(value[rows, capacity, number])
    return _read(taken, job, size, number, complete), complete


def _changed(job: Ints, size: Ints, deployed: Ints) -> Floats:
    """Return changed(j, i - c_j, i) for every genome, its jobs j and i = 0 .. C, (P, K, C + 1).

    It is the number of GPUs that job j would take from other jobs if its last gene were i - 1.
    """
    capacity = len(deployed)
    occupied = np.concatenate(([0], (deployed != IDLE).cumsum()))
    own = (deployed == job[:, :, None]).cumsum(axis=2)
    foreign = occupied - np.concatenate((np.zeros_like(own[:, :, :1]), own), axis=2)
    before = np.maximum(np.arange(capacity + 1) - size[:, :, None], 0)
    return np.asarray(foreign - np.take_along_axis(foreign, before, axis=2), dtype=float)


def _read(taken: Ints, job: Ints, size: Ints, number: Ints, complete: Mask) -> Ints:
    """Return the genomes of the kept paths, read from the right; `taken` has the last jobs."""
    capacity = taken.shape[1] - 1
    genomes = np.full((len(taken), capacity), IDLE)
    for row in np.flatnonzero(complete).tolist():
        i, k = capacity, int(number[row])
        while k > 0:
            # An entry that did not improve on i - 1 was copied from there.
            while taken[row, i, k] == IDLE:
                i -= 1
            j = int(taken[row, i, k])
            genomes[row, i - size[row, j] : i] = job[row, j]
            i, k = i - int(size[row, j]), k - 1
    return genomes
