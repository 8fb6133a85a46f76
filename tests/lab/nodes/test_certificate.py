"""The bound by prices alone, by hand and against the best plans of tiny rounds."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from lab.nodes.certificate import best_pattern, proven_by_prices
from ronda.instances.generate.tasks import azure_like, blocks, openb_like
from ronda.instances.tasks.arrays import TaskRound
from ronda.solvers.patterns.answer import solve_tasks
from tiny_tasks import best_tried, tiny_tasks

ROUND = TaskRound(
    resources=("cpu",),
    kinds=("a", "b"),
    capacity=np.array([[4], [6]]),
    count=np.array([1, 2]),
    pool=np.array([0, 1]),
    pools=("p", "q"),
    use=np.array([[3], [2]]),
    slices=np.array([1, 2]),
    speed=np.array([[1.0, 1.25], [0.0, 1.0]]),
    shape=np.array([0, 0, 1]),
    value=np.array([5.0, 4.0, 6.0]),
    group=np.array([-1, -1, -1]),
    held_task=np.array([1]),
    held_node=np.array([1]),
    move_cost=np.array([0.0, 0.5, 0.0]),
)


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        # Nodes 4 x 1 + 2 x 6 x 0.5 = 10. The first job gains 5 - 3 in p, 6.25 - 1.5 in q. The
        # second stays for 5 - 1.5; elsewhere it would gain as much less the move. The gang
        # gains 6 - 2 x 1.
        ({}, 10 + 4.75 + 3.5 + 4),
        # At node 0 it gains 4 - 3 by staying, and 5 - 1.5 - 0.5 elsewhere.
        ({"held_node": np.array([0])}, 10 + 4.75 + 3 + 4),
        # But nobody may be disrupted.
        ({"held_node": np.array([0]), "most_disrupted": 0}, 10 + 4.75 + 1 + 4),
        # The first and the gang are ways to run one job.
        ({"job": np.array([0, 1, 0])}, 10 + 4.75 + 3.5),
    ],
)
def test_by_hand(given, bound):
    """At prices of 1 and a half."""
    round_ = replace(ROUND, **given)
    prices = [[1.0], [0.5]]
    assert proven_by_prices(round_, prices) == pytest.approx(bound, rel=1e-15)
    assert proven_by_prices(round_, prices, exact=True) == Fraction(bound)


def test_no_plan_is_worth_more_at_any_prices():
    """Of 100 tiny rounds; and the exact number is that of floats."""
    for seed in range(100):
        round_, rng = tiny_tasks(seed), np.random.default_rng(seed)
        prices = rng.exponential(rng.choice([0.1, 0.5, 2.0]), round_.capacity.shape)
        prices *= rng.random(prices.shape) < 0.7
        slots = rng.exponential(1.0, round_.speed.shape) if seed % 2 else None
        bound = proven_by_prices(round_, prices, slots, exact=True)
        assert bound >= Fraction(best_tried(round_)) * (1 - Fraction(1, 10**12)), seed
        assert float(bound) == pytest.approx(proven_by_prices(round_, prices, slots), rel=1e-12)


@pytest.mark.parametrize(
    ("make", "tasks", "over"),
    [(openb_like, 600, 1e-9), (azure_like, 1600, 0.006), (blocks, 300, 0.1)],
)
def test_prices_of_a_plan_prove_what_it_claims(make, tasks, over):
    """In fractions, without a solver: all, or nearly, unless sizes divide those of nodes badly."""
    round_ = make(100, tasks, seed=1)
    plan = solve_tasks(round_)
    proven = proven_by_prices(round_, plan.node_price, exact=True)
    assert Fraction(plan.objective) <= proven <= Fraction(plan.bound * (1 + over))


def test_prices_of_slots_by_hand():
    """A slot of the first shape costs 3.5 in p and 2 in q, where the gang's costs 1."""
    # Nodes: 4 + 1 x (3.5 - 3), and 2 times 3 + 2 (2 - 1.5) + 0 for the gang. The first job gains
    # 6.25 - 2, the second 5 - 1.5 where it is, the gang 6 - 2.
    bound = 4.5 + 2 * 4 + 4.25 + 3.5 + 4
    assert proven_by_prices(ROUND, [[1.0], [0.5]], [[3.5, 2.0], [9.0, 1.0]]) == bound


def test_patterns_prove_the_bound_where_sums_do_not():
    """Blocks, in fractions, without a solver: the prices of slots prove what the plan claims."""
    round_ = blocks(100, 300, seed=1)
    plan = solve_tasks(round_)
    prices = plan.node_price, plan.slot_price
    proven = proven_by_prices(round_, *prices, exact=True, patterns=True)
    assert Fraction(plan.objective) <= proven <= Fraction(plan.bound)


def test_the_best_pattern_is_that_of_all_tried():
    """Of up to four slots on a small node."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        price, use = rng.exponential(1.0, 4), rng.integers(0, 4, (4, 2))
        use[:, 0] += use.sum(axis=1) == 0
        capacity, most = rng.integers(4, 13, 2), rng.integers(0, 5, 4)
        tried = [
            float(price @ n)
            for n in np.ndindex(*(most + 1))
            if (np.array(n) @ use <= capacity).all()
        ]
        assert best_pattern(price, use, capacity, most) == pytest.approx(max(tried), rel=1e-12)


def test_a_price_below_0_proves_nothing():
    """It is refused."""
    with pytest.raises(ValueError, match="below 0"):
        proven_by_prices(ROUND, [[-1.0], [0.0]])
