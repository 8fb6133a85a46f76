"""Packing an allocation near the genome that runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.systems.ones.genome import IDLE, counts, ranks
from ronda.systems.ones.reorder import in_order, moves, reorder

o = IDLE


@pytest.mark.parametrize(
    ("gpus", "deployed", "expected", "moved"),
    [
        # Nothing changes.
        ([2, 2], [0, 0, 1, 1], [0, 0, 1, 1], 0),
        # Job 3 is new and takes the GPU that 0 gives up; at the end it would push all others: 3.
        ([1, 2, 2, 1], [0, 0, 1, 1, 2, 2], [0, 3, 1, 1, 2, 2], 1),
        # The heuristic keeps one path: 1 on the first two GPUs costs nothing, as 2 there would,
        # and is kept; then 2 can only follow. [2, 2, 1, 1] would move nothing.
        ([0, 2, 2], [o, o, 1, 1], [1, 1, 2, 2], 2),
        # Job 0 grows to the left: 1 moves one GPU at most.
        ([3, 1], [o, 0, 0, 1], [0, 0, 0, 1], 0),
        # Jobs lie between each other; whichever is packed first, one GPU of each changes hands.
        ([2, 2], [0, 1, 0, 1], [0, 0, 1, 1], 2),
    ],
)
def test_by_hand(gpus, deployed, expected, moved):
    """The genome with least changes of hands."""
    deployed = np.array(deployed)
    genomes = reorder(np.array([gpus]), deployed)
    assert genomes.tolist() == [expected]
    assert moves(genomes, deployed).tolist() == [moved]


def test_in_order_of_the_deployed_genome_then_by_number():
    """Deployed 2, 0; job 1 is new."""
    genome = in_order(np.array([[1, 2, 1]]), np.array([2, 2, 0, o]))
    assert genome.tolist() == [[2, 0, 1, 1]]


@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 14))
def test_packed_complete_and_no_worse_than_in_order(seed, jobs, capacity):
    """Any allocation that fits keeps its counts, is contiguous, and moves no more than naively."""
    rng = np.random.default_rng(seed)
    deployed = rng.integers(IDLE, jobs, capacity)
    some = rng.integers(IDLE, jobs, (5, capacity))
    allocations = counts(some, jobs)
    genomes = reorder(allocations, deployed)
    assert (counts(genomes, jobs) == allocations).all()
    assert (moves(genomes, deployed) <= moves(in_order(allocations, deployed), deployed)).all()
    for genome, rank in zip(genomes, ranks(genomes), strict=True):
        begins = genome[(rank == 0) & (genome != IDLE)]
        edges = np.flatnonzero(np.diff(genome, prepend=IDLE - 1))
        assert sorted(genome[edges][genome[edges] != IDLE].tolist()) == sorted(begins.tolist())


def test_more_jobs_than_bits_of_a_word():
    """70 jobs of one GPU each in their places: nothing moves."""
    deployed = np.random.default_rng(0).permutation(70)
    assert moves(reorder(np.ones((1, 70), dtype=int), deployed), deployed).tolist() == [0]
