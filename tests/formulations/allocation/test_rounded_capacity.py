"""Capacities rounded down cut off no answer, and lower the bound of the relaxation."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.allocation.rounded_capacity import folded, with_floors
from ronda.formulations.allocation.separable import Separable


def test_a_capacity_holds_whole_jobs_only():
    """13 GPUs: 6 jobs of 2 or 3 of 4; 1 divides 13, and 16 GPUs are no multiple of 3 alone."""
    sizes = np.array([[1.0, 2.0, 4.0, 0.0, 0.0], [0.0, 0.0, 0.0, 4.0, 3.0]])
    problem = Separable.without_blocks(
        np.arange(6), np.ones(5), sizes, np.array([13.0, 16.0]), ("a", "b")
    )
    tight, of, size = with_floors(problem)
    assert tight.names == ("a", "b", "a/2", "a/4", "b/3")
    assert (of.tolist(), size.tolist()) == ([0, 0, 1], [2, 4, 3])
    assert tight.capacity.tolist() == [13.0, 16.0, 6.0, 3.0, 5.0]
    assert tight.use.dense()[2:].tolist() == [
        [0.0, 1.0, 2.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0, 1.0],
    ]
    # A price of 8 for four GPUs, and of 6 for two, are 2 and 3 for one.
    assert folded(np.array([1.0, 0.0, 6.0, 8.0, 0.0]), of, size).tolist() == [6.0, 0.0]


def test_rounded_capacities_need_no_slots_of_equal_options():
    """Forty jobs of 1, 2, 4 or 8 of one of two goods: 320 options of eight kinds."""
    sizes = np.array([1.0, 2.0, 4.0, 8.0])
    use = np.tile(np.kron(np.eye(2), sizes), (1, 40))
    problem = Separable.without_blocks(
        np.arange(41) * 8, np.ones(320), use, np.array([13.0, 8.0]), ("a", "b")
    )
    tight, _, _ = with_floors(problem)
    assert tight.names == ("a", "b", "a/2", "a/4", "a/8")
    assert tight.use.amount.shape == (4, 8)
    rounded = [np.where(use[0] > 0, use[0] // d, 0.0) for d in (2, 4, 8)]
    assert (tight.use.dense() == np.vstack([use, rounded])).all()


def test_what_is_not_whole_gets_no_row():
    """Watts have no size; nodes that wake give what no division of the capacity counts."""
    problem = Separable.without_blocks(
        np.arange(3),
        np.ones(2),
        np.array([[2.0, 4.0], [2.5, 4.0]]),
        np.array([7.5, 7.0]),
        ("a", "b"),
    )
    assert with_floors(problem)[0].names == ("a", "b")


@given(st.integers(0, 10_000))
def test_no_answer_is_cut_off(seed):
    """Whatever fits fits the rows that are rounded down as well, and nothing else does."""
    rng = np.random.default_rng(seed)
    use = rng.integers(0, 6, (2, 6)).astype(float)
    problem = Separable.without_blocks(
        np.array([0, 2, 4, 6]), np.ones(6), use, rng.integers(1, 12, 2).astype(float), ("a", "b")
    )
    tight, _, _ = with_floors(problem)
    for rows in itertools.product((-1, 0, 1), (-1, 2, 3), (-1, 4, 5)):
        chosen, blocks = np.array(rows), np.zeros(0)
        fits = (problem.excess(chosen, blocks) <= 0).all()
        assert fits == (tight.excess(chosen, blocks) <= 0).all()
