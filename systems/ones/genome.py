"""The genomes of ONES and the operators on a whole population of them.

Gene i holds the number of the job on GPU i, or `IDLE`. GPUs are numbered node by node, so
neighbouring genes form packed placements. An allocation is the number of GPUs of each job. The
operators (artifact, src/scheduler.py) change nothing in place. Shapes use P genomes, C genes and J
jobs.
"""

import numpy as np

from ronda.instances.base import Floats, Ints, Mask

IDLE = -1


def counts(genomes: Ints, jobs: int) -> Ints:
    """Return the number of GPUs of each job, shape (P, J)."""
    rows = np.arange(len(genomes))[:, None] * (jobs + 1)
    flat = np.bincount((rows + genomes + 1).ravel(), minlength=len(genomes) * (jobs + 1))
    return flat.reshape(len(genomes), jobs + 1)[:, 1:]


def ranks(genomes: Ints) -> Ints:
    """Return the number of genes of the same job to the left of each gene, shape (P, C)."""
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
    """Return genomes in which each job keeps its leftmost genes, at most ``limit`` (J,)."""
    most = np.append(limit, 0)  # the last entry belongs to IDLE, which is -1
    return np.where(ranks(genomes) < most[genomes], genomes, IDLE)


def refresh(genomes: Ints, ones_max: Ints) -> Ints:
    """Return genomes in which each job keeps at most max(1, ones_max) genes."""
    return _limited(genomes, np.maximum(ones_max, 1))


def crossover(first: Ints, second: Ints, swap: Mask, ones_max: Ints) -> Ints:
    """Return the children of pairs (Q, C) by uniform crossover, first children first, (2Q, C).

    Parents exchange the genes in `swap` (Q, C). A job keeps its leftmost ``ones_max`` (J,) genes. A
    job that never ran keeps no genes and comes back when the child is padded.
    """
    children = (np.where(swap, second, first), np.where(swap, first, second))
    return _limited(np.concatenate(children), ones_max)


def mutate(genomes: Ints, removed: Mask) -> Ints:
    """Return genomes (P, C) without any genes of the ``removed`` (P, J) jobs."""
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
    """Return allocations, shape (P, J), that leave no GPU idle that a job may use.

    Three passes each continue until all GPUs are used. First, `new` jobs without GPUs get `start`
    (J,) GPUs in order of arrival. Second, `executed` jobs grow up to ``ones_max`` (J,), shortest
    remaining time first. Third, they grow up to ``train_max`` (J,) in the same order.
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
    """Return SRUF scores (lower is better), the sums of ``weights`` (J, C + 1), shape (P,)."""
    return np.asarray(weights[np.arange(len(weights)), allocations].sum(axis=1))
