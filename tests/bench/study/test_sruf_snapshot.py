"""SRUF snapshots: scores, the exact optimum by three ways, and what is refused."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.bench.study.sruf_milp import by_milp
from ronda.bench.study.sruf_snapshot import (
    SIZES,
    SrufSnapshot,
    generate,
    optimum,
    shortest_first,
    snapshot,
)
from ronda.instances.errors import InputError

INF = np.inf

# Two jobs, left = (6, 2) samples; X(1) = 1 and X(2) = 1.5 for both, the second has limit 1 only.
# w = c left / X(c): job 0: 6, 2·6/1.5 = 8; job 1: 2.
HAND = snapshot([6, 2], [[1, 1.5], [1, 0]], capacity=2)


def brute_force(problem):
    """Return the least score over all allocations that are full."""
    every = np.array(list(product(*(range(r + 1) for r in problem.limits))), dtype=np.int64)
    every = every.reshape(-1, problem.jobs)
    return problem.score(every[problem.full(every)]).min()


@st.composite
def snapshots(draw):
    """Small problems with ties, jobs of limit 0 and more or less capacity than the limits."""
    limits = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    number = st.integers(0, 9).map(lambda n: n / 2)
    weights = np.full((len(limits), 4), INF)
    for j, most in enumerate(limits):
        weights[j, :most] = draw(st.lists(number, min_size=most, max_size=most))
    return SrufSnapshot(weights, draw(st.integers(0, 14)))


def test_weights_are_the_gpu_seconds_to_come():
    """Weights are the gpu seconds to come."""
    assert HAND.weights.tolist() == [[6, 8], [2, INF]]
    assert HAND.limits.tolist() == [2, 1]
    assert HAND.used == 2


def test_the_score_counts_only_jobs_with_gpus_and_takes_populations():
    """The score counts only jobs with gpus and takes populations."""
    # (1, 1): 6 + 2; (2, 0): 8; (0, 1): 2; (0, 2): job 1 has limit 1; (3, 0): no such column.
    population = [[1, 1], [2, 0], [0, 1], [0, 2], [3, 0]]
    assert HAND.score(population).tolist() == [8, 8, 2, INF, INF]
    assert HAND.full(population).tolist() == [True, True, False, False, False]
    assert float(HAND.score([1, 1])) == 8


def test_new_jobs_take_a_gpu_each():
    """New jobs take a gpu each."""
    assert snapshot([6, 2], [[1, 1.5], [1, 0]], capacity=2, new=1).used == 1
    # One GPU left: job 1 scores 2, job 0 would score 6.
    assert optimum(snapshot([6, 2], [[1, 1.5], [1, 0]], capacity=2, new=1)).tolist() == [0, 1]


def test_shortest_first_fills_the_limits_in_the_order_of_single_gpu_time():
    """Shortest first fills the limits in the order of single gpu time."""
    # Job 1 (2 s on one GPU) before job 0 (6 s): 1 GPU, its limit, then what is left.
    assert shortest_first(HAND).tolist() == [1, 1]
    # The optimum need not be it: w = (1, 9), (2, 2.5); 2 GPUs. SRPT gives job 0 both: 9.
    # Best: job 1 on both, 2.5 (one each: 3).
    twisted = SrufSnapshot(np.array([[1, 9], [2, 2.5]]), 2)
    assert shortest_first(twisted).tolist() == [2, 0]
    assert optimum(twisted).tolist() == [0, 2]


def test_capacity_beyond_all_limits_gives_every_job_its_limit():
    """Capacity beyond all limits gives every job its limit."""
    assert optimum(SrufSnapshot(HAND.weights, 99)).tolist() == [2, 1]
    assert by_milp(SrufSnapshot(HAND.weights, 99))[0].tolist() == [2, 1]


def test_nothing_to_give():
    """Nothing to give."""
    for problem in (SrufSnapshot(HAND.weights, 0), SrufSnapshot(np.full((2, 1), INF), 3)):
        assert optimum(problem).tolist() == [0, 0]
        assert by_milp(problem)[0].tolist() == [0, 0]


@settings(max_examples=60, deadline=None)
@given(snapshots())
def test_dynamic_programming_finds_what_brute_force_finds(problem):
    """Dynamic programming finds what brute force finds."""
    gpus = optimum(problem)
    assert problem.full(gpus)
    assert float(problem.score(gpus)) == pytest.approx(brute_force(problem))


@settings(max_examples=15, deadline=None)
@given(snapshots())
def test_the_milp_agrees(problem):
    """The milp agrees."""
    gpus, outcome = by_milp(problem)
    assert gpus is not None, outcome
    assert problem.full(gpus)
    assert float(problem.score(gpus)) == pytest.approx(float(problem.score(optimum(problem))))


@pytest.mark.parametrize(("gpus", "jobs"), SIZES)
def test_generated_snapshots_are_reproducible_and_srpt_is_not_optimal(gpus, jobs):
    """Generated snapshots are reproducible and srpt is not optimal."""
    problem = generate(gpus, jobs, seed=3)
    assert (problem.weights == generate(gpus, jobs, seed=3).weights).all()
    assert (problem.jobs, problem.capacity, problem.used) == (jobs, gpus, gpus)
    best, filled = optimum(problem), shortest_first(problem)
    assert problem.full(best)
    assert problem.full(filled)
    assert problem.score(best) < problem.score(filled)


def test_the_milp_agrees_on_a_generated_snapshot():
    """The milp agrees on a generated snapshot."""
    problem = generate(64, 40, seed=0)
    gpus, _ = by_milp(problem)
    assert float(problem.score(gpus)) == pytest.approx(float(problem.score(optimum(problem))))


@pytest.mark.parametrize(
    ("weights", "capacity", "words"),
    [
        ([1.0, 2.0], 1, "shape (2,)"),
        ([[1.0, float("nan")]], 1, "weights[0, 1]"),
        ([[-1.0]], 1, "weights[0, 0]: found -1"),
        ([[1.0], [INF]], -1, "capacity: found -1"),
        ([[INF, 2.0]], 1, "weights[0]: found a gap"),
    ],
)
def test_impossible_snapshots_are_refused(weights, capacity, words):
    """Impossible snapshots are refused."""
    with pytest.raises(InputError) as caught:
        SrufSnapshot(np.array(weights), capacity)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("left", "speed", "new", "words"),
    [
        ([1.0, 2.0], [[1.0]], 0, "left of shape (2,)"),
        ([-1.0], [[1.0]], 0, "sruf: left"),
        ([1.0], [[INF]], 0, "sruf: speed"),
        ([1.0], [[1.0]], 5, "sruf: new: found 5 jobs"),
    ],
)
def test_impossible_states_are_refused(left, speed, new, words):
    """Impossible states are refused."""
    with pytest.raises(InputError) as caught:
        snapshot(left, speed, 4, new=new)
    assert words in str(caught.value)


def test_allocations_of_other_jobs_are_refused():
    """Allocations of other jobs are refused."""
    with pytest.raises(InputError, match="gpus: found shape"):
        HAND.score([1, 1, 1])
    with pytest.raises(InputError, match="at least 1"):
        generate(0, 4, seed=0)
