"""ONES's operators, each by hand on small genomes, and what must hold for any."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.systems.ones.genome import (
    IDLE,
    counts,
    crossover,
    mutate,
    pad,
    ranks,
    refresh,
    scores,
)

o = IDLE


def rows(*genomes):
    """Return genomes as an array."""
    return np.array(genomes)


def test_counts_and_ranks():
    """Job 0 has the first, second and last gene of A B A-like rows; idle genes count for nobody."""
    genomes = rows([0, 1, 0, o], [2, 2, o, 2])
    assert counts(genomes, 3).tolist() == [[2, 1, 0], [0, 0, 3]]
    assert ranks(genomes)[:, :3].tolist() == [[0, 0, 1], [0, 1, 0]]


def test_refresh_keeps_the_leftmost_genes_and_at_least_one():
    """Limits 2, 0 and 1: the third 0 and the second 1 and 2 go; job 1 keeps max(1, 0) = 1."""
    genomes = rows([0, 0, 1, 0, 1, 2, 2, o])
    assert refresh(genomes, np.array([2, 0, 1])).tolist() == [[0, 0, 1, o, o, 2, o, o]]


def test_crossover_swaps_genes_and_keeps_limits():
    """Genes 1 and 3 change sides. Job 0 may have two genes, job 1 one, job 2 never ran (0).

    Child 1: 0 [1] 0 [1] -> the second 1 goes; child 2: 2 [0] 1 [0] -> the 2 goes.
    """
    first, second = rows([0, 0, 0, 0]), rows([2, 1, 1, 1])
    swap = rows([False, True, False, True])
    children = crossover(first, second, swap, np.array([2, 1, 0]))
    assert children.tolist() == [[0, 1, 0, o], [o, 0, 1, 0]]


def test_mutation_takes_whole_jobs():
    """Job 0 leaves the first genome, nobody the second; idle genes stay idle."""
    genomes = rows([0, 1, 0, o], [0, 1, 0, o])
    removed = rows([True, False], [False, False])
    assert mutate(genomes, removed).tolist() == [[o, 1, o, o], [0, 1, 0, o]]


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        # One GPU is free: the older new job takes it.
        (3, [1, 1, 0, 1, 0]),
        # Both new jobs, then job 1 (least time left) from 1 to its ones_max of 2.
        (5, [1, 2, 0, 1, 1]),
        # Then job 0 and 2 up to ones_max 2 and 1.
        (7, [2, 2, 1, 1, 1]),
        # Third pass, job 1 first, up to train_max = 4.
        (9, [2, 4, 1, 1, 1]),
        # All limits are reached: 2 + 4 + 2 + 1 + 1 = 10 of 16 GPUs.
        (16, [2, 4, 2, 1, 1]),
    ],
)
def test_pad_works_in_three_passes(capacity, expected):
    """Jobs 3 and 4 are new; executed ones by remaining time: 1, 0, 2."""
    padded = pad(
        np.array([[1, 1, 0, 0, 0]]),
        capacity,
        new=np.array([3, 4]),
        executed=np.array([1, 0, 2]),
        ones_max=np.array([2, 2, 1, 0, 0]),
        train_max=np.array([2, 4, 2, 1, 1]),
        start=np.ones(5, dtype=int),
    )
    assert padded.tolist() == [expected]


def test_scores():
    """Weights at the counts: 5 + 3 and 7 + 0."""
    weights = np.array([[0.0, 5.0, 7.0], [0.0, 3.0, 4.0]])
    assert scores(np.array([[1, 1], [2, 0]]), weights).tolist() == [8.0, 7.0]


@given(st.data())
def test_limits_and_work_conservation(data):
    """After all operators no limit is exceeded; GPUs are idle only if every limit is reached."""
    jobs = data.draw(st.integers(1, 6))
    capacity = data.draw(st.integers(1, 12))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    train_max = rng.integers(1, 6, jobs)
    ones_max = np.minimum(train_max, rng.integers(0, 6, jobs))
    new = np.flatnonzero(rng.random(jobs) < 0.3)
    executed = rng.permutation(np.setdiff1d(np.arange(jobs), new))
    train_max[new], ones_max[new] = 1, 0
    genomes = rng.integers(IDLE, jobs, (8, capacity))
    kept = refresh(genomes, ones_max)
    assert (counts(kept, jobs) <= np.maximum(ones_max, 1)).all()
    swap = rng.random((4, capacity)) < 0.5
    children = crossover(kept[:4], kept[4:], swap, ones_max)
    assert (counts(children, jobs) <= ones_max).all()
    before = counts(np.concatenate((kept, children)), jobs)
    start = np.ones(jobs, dtype=int)
    after = pad(before, capacity, new, executed, ones_max, train_max, start)
    assert (after >= before).all()
    assert (after <= train_max).all()
    assert (after.sum(axis=1) == min(capacity, train_max.sum())).all()
