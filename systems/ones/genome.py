"""Genomes of ONES and its operators on them, for a whole population.

Gene i holds the number of the job that has GPU i, or `IDLE`. GPUs are numbered node by node, so
neighbouring genes are packed placements. An allocation is the number of GPUs of each job. The
operators (artifact, src/scheduler.py) change nothing in place. Shapes: P genomes, C genes, J jobs.
"""

import numpy as np

from ronda.instances.arrays import Floats, Ints, Mask

IDLE = -1


def counts(genomes: Ints, jobs: int) -> Ints:
    """Return (P, J) the GPUs of each job."""
    rows = np.arange(len(genomes))[:, None] * (jobs + 1)
    flat = np.bincount((rows + genomes + 1).ravel(), minlength=len(genomes) * (jobs + 1))
    return flat.reshape(len(genomes), jobs + 1)[:, 1:]


def ranks(genomes: Ints) -> Ints:
    """Return (P, C) the number of genes of the same job to the left of each gene."""
    order = np.argsort(genomes, axis=1, kind="stable")
    ordered = np.take_along_axis(genomes, order, axis=1)
    place = np.broadcast_to(np.arange(genomes.shape[1]), genomes.shape)
    first = np.ones(genomes.shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    begin = np.maximum.accumulate(np.where(first, place, 0), axis=1)
    found = np.empty_like(genomes)
    np.put_along_axis(found, order, place - begin, axis=1)
    return found


def _limited(genomes: Ints, limit: Ints) -> Ints:
    """Return genomes in which each job keeps its leftmost genes, ``limit`` (J,) at most."""
    most = np.append(limit, 0)  # the last entry is that of IDLE, which is -1
    return np.where(ranks(genomes) < most[genomes], genomes, IDLE)


def refresh(genomes: Ints, ones_max: Ints) -> Ints:
    """Return genomes in which each job keeps at most max(1, ones_max) genes."""
    return _limited(genomes, np.maximum(ones_max, 1))


def crossover(first: Ints, second: Ints, swap: Mask, ones_max: Ints) -> Ints:
    """Return (2Q, C) children of (Q, C) pairs by uniform crossover, all first children first.

    Parents exchange the genes of `swap` (Q, C). A job keeps its leftmost ``ones_max`` (J,) genes; a
    job that never ran keeps none, and comes back when the child is padded.
    """
    children = (np.where(swap, second, first), np.where(swap, first, second))
    return _limited(np.concatenate(children), ones_max)


def mutate(genomes: Ints, removed: Mask) -> Ints:
    """Return genomes (P, C) from which jobs are ``removed`` (P, J), with all of their genes."""
    gone = np.append(removed, np.zeros((len(genomes), 1), dtype=bool), axis=1)
    return np.where(np.take_along_axis(gone, genomes, axis=1), IDLE, genomes)


def pad(
    allocations: Ints,
    capacity: int,
    new: Ints,
    executed: Ints,
    ones_max: Ints,
    train_max: Ints,
    start: Ints,
) -> Ints:
    """Return (P, J) allocations in which no GPU stays idle that a job may use (work conservation).

    Three passes, each until all GPUs are used: `new` jobs that have none get `start` (J,), first
    come first; `executed` jobs, shortest remaining time first, up to ``ones_max`` (J,); the same up
    to ``train_max`` (J,).
    """
    padded = allocations.copy()

    def free() -> Ints:
        return np.asarray(np.maximum(capacity - padded.sum(axis=1, keepdims=True), 0))

    wanted = np.where(padded[:, new] == 0, start[new], 0)
    padded[:, new] += np.where(wanted.cumsum(axis=1) <= free(), wanted, 0)
    for limit in (ones_max, train_max):
        wanted = np.maximum(limit[executed] - padded[:, executed], 0)
        before = wanted.cumsum(axis=1) - wanted
        padded[:, executed] += np.clip(free() - before, 0, wanted)
    return padded


def scores(allocations: Ints, weights: Floats) -> Floats:
    """Return (P,) SRUF scores, less is better: the sums of ``weights`` (J, C + 1) at the counts."""
    return np.asarray(weights[np.arange(len(weights)), allocations].sum(axis=1))
