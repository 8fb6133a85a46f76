"""The two ways to find the best plan of a tiny round of tasks, against each other and by hand."""

from dataclasses import replace

import numpy as np
import pytest

from ronda.instances.tasks.arrays import TaskRound
from tiny_tasks import best_by_nodes, best_tried, tiny_tasks


def by_hand(**given):
    """Return a round with nodes 0 (4 CPUs) and 1 (6 CPUs), each of a kind and pool of its own."""
    none = np.zeros(0, dtype=np.int64)
    usual = {
        "resources": ("cpu",),
        "kinds": ("a", "b"),
        "capacity": np.array([[4], [6]]),
        "count": np.array([1, 1]),
        "pool": np.array([0, 1]),
        "pools": ("p", "q"),
        "use": np.array([[3], [2]]),
        "slices": np.array([1, 1]),
        "speed": np.array([[1.0, 1.2], [1.0, 0.0]]),
        "shape": np.array([0, 0, 0, 1]),
        "value": np.array([5.0, 4.0, 3.0, 2.0]),
        "group": np.array([-1, -1, -1, -1]),
        "held_task": none,
        "held_node": none,
        "move_cost": np.zeros(4),
    }
    return TaskRound(**usual | given)


@pytest.mark.parametrize(
    ("given", "best"),
    [
        # Two of 3 CPUs on the fast node, one on the slow: (5 + 4) 1.2 + 3.
        ({}, 13.8),
        # 0 and 1 apart: (5 + 3) 1.2 + 4.
        ({"group": np.array([0, 0, -1, -1])}, 13.6),
        # 0 and 2 are one job: (5 + 4) 1.2, and the last one on the slow node.
        ({"job": np.array([0, 1, 0, 2])}, 12.8),
        # The third runs on the fast node, and a move costs 1: (5 + 3) 1.2 + 4 beats 13.8 - 1.
        (
            {
                "held_task": np.array([2]),
                "held_node": np.array([1]),
                "move_cost": np.array([0.0, 0, 1, 0]),
            },
            13.6,
        ),
        # It runs on the slow node and may not be disrupted.
        ({"held_task": np.array([3]), "held_node": np.array([0]), "most_disrupted": 0}, 12.8),
        # Two slices of 2 CPUs in one pool have no two nodes there: as without that task.
        ({"slices": np.array([1, 2])}, 13.8),
    ],
)
def test_by_hand(given, best):
    """Both find it."""
    assert best_tried(by_hand(**given)) == pytest.approx(best, rel=1e-12)
    assert best_by_nodes(by_hand(**given)) == pytest.approx(best, rel=1e-9)


def test_a_gang_has_both_slices_or_none():
    """On two nodes of one pool; with 3 CPUs of the second taken for good there is no room."""
    one_pool = {"capacity": np.array([[4], [4]]), "pool": np.array([0, 0])}
    gang = {"slices": np.array([1, 2]), "value": np.array([5.0, 4.0, 3.0, 8.0])}
    # 2 + 3 CPUs do not fit in 4: the gang alone is worth 8, two of the others 5 + 4.
    assert best_tried(by_hand(**one_pool, **gang)) == pytest.approx(9.0)
    assert best_by_nodes(by_hand(**one_pool, **gang)) == pytest.approx(9.0)
    wide = by_hand(**one_pool | {"capacity": np.array([[5], [5]])}, **gang)
    assert best_tried(wide) == best_by_nodes(wide) == pytest.approx(17.0)
    split = replace(wide, pool=np.array([0, 1]), speed=np.ones((2, 2)))
    assert best_tried(split) == best_by_nodes(split) == pytest.approx(9.0)


MORE = [pytest.param(first, marks=pytest.mark.soak) for first in range(60, 300, 60)]


@pytest.mark.parametrize("first", [0, *MORE])
def test_trying_every_plan_agrees_with_a_model_by_nodes(first):
    """On 60 rounds with groups, gangs, ways, moves and budgets."""
    for seed in range(first, first + 60):
        round_ = tiny_tasks(seed)
        assert best_tried(round_) == pytest.approx(best_by_nodes(round_), rel=1e-7, abs=1e-7), seed


def test_tiny_rounds_have_a_bit_of_everything():
    """Of 100 at least 20 have a group, a gang, two ways, running tasks and a budget each."""
    rounds = [tiny_tasks(seed) for seed in range(100)]
    assert sum((r.group >= 0).any() for r in rounds) > 20
    assert sum((r.slices[r.shape] > 1).any() for r in rounds) > 20
    assert sum(r.job is not None for r in rounds) > 20
    assert sum(len(r.held_task) > 0 for r in rounds) > 20
    assert sum(r.most_disrupted is not None for r in rounds) > 20
