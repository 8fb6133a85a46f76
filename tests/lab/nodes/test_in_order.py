"""Rules that place tasks one after another, and HiGHS on nodes, by hand and against best plans."""

from dataclasses import replace

import numpy as np
import pytest

from lab.nodes.in_order import EVERY, best_fit, price_greedy, worth_of
from lab.nodes.models import relaxed_prices, whole_on_nodes
from ronda.instances.errors import InputError
from ronda.instances.tasks.arrays import TaskRound
from tiny_tasks import best_tried, tiny_tasks

NONE = np.zeros(0, dtype=np.int64)
ROUND = TaskRound(
    resources=("cpu", "gpu"),
    kinds=("a", "b"),
    capacity=np.array([[4, 0], [6, 5]]),
    count=np.array([2, 1]),
    pool=np.array([0, 1]),
    pools=("p", "q"),
    use=np.array([[3, 0], [1, 2]]),
    slices=np.array([1, 1]),
    speed=np.array([[1.0, 1.0], [0.0, 1.0]]),
    shape=np.array([0, 0, 0, 0, 0, 1, 1, 1]),
    value=np.array([5.0, 4.0, 3.0, 2.0, 1.0, 6.0, 6.0, 1.0]),
    group=np.full(8, -1),
    held_task=NONE,
    held_node=NONE,
    move_cost=np.zeros(8),
)


def alone(seed):
    """Return a tiny round of jobs of one task and one slice."""
    made = tiny_tasks(seed)
    return replace(made, job=None, slices=np.ones_like(made.slices), held_task=NONE, held_node=NONE)


@pytest.mark.parametrize("rule", [best_fit, price_greedy])
def test_by_hand(rule):
    """Three of 3 CPUs, the best, and both of the GPU node."""
    task, node = rule(ROUND)
    assert task.tolist() == [0, 1, 2, 5, 6]
    assert node[-2:].tolist() == [2, 2]
    assert worth_of(ROUND, task, node) == 24.0


@pytest.mark.parametrize("rule", [best_fit, price_greedy])
def test_what_runs_stays_and_groups_are_apart(rule):
    """The last of the large runs on the GPU node, where two of a group may not be."""
    runs = {"held_task": np.array([4]), "held_node": np.array([2])}
    round_ = replace(ROUND, group=np.array([-1, -1, -1, -1, -1, 7, 7, 7]), **runs)
    task, node = rule(round_)
    assert task.tolist() == [0, 1, 4, 5] or task.tolist() == [0, 1, 4, 6]
    assert node[-2:].tolist() == [2, 2]


@pytest.mark.parametrize("rule", [best_fit, price_greedy])
def test_tiny_rounds_keep_every_limit(rule):
    """And no plan is worth more than the best."""
    for seed in range(60):
        round_ = alone(seed)
        task, node = rule(round_)
        assert len(np.unique(task)) == len(task)
        used = np.zeros((round_.nodes, 3), dtype=np.int64)
        np.add.at(used, node, round_.use[round_.shape[task]])
        assert (used <= round_.capacity[round_.node_kind]).all()
        pairs = [(n, g) for n, g in zip(node, round_.group[task], strict=True) if g >= 0]
        assert len(set(pairs)) == len(pairs)
        assert (round_.speed[round_.shape[task], round_.pool[round_.node_kind[node]]] > 0).all()
        assert worth_of(round_, task, node) <= best_tried(round_) * (1 + 1e-9) + 1e-12


def test_full_nodes_are_forgotten_and_nothing_else():
    """Each node has room for one large task, and then for exactly one small one."""
    nodes = EVERY + 100
    round_ = replace(
        ROUND,
        capacity=np.array([[4, 0], [4, 2]]),
        count=np.array([0, nodes]),
        shape=np.arange(2 * nodes) % 2,
        value=np.where(np.arange(2 * nodes) % 2, 1.0, 100.0),
        group=np.full(2 * nodes, -1),
        move_cost=np.zeros(2 * nodes),
    )
    for rule in (best_fit, price_greedy):
        assert len(rule(round_)[0]) == 2 * nodes


def test_rules_place_no_gangs():
    """They are refused."""
    with pytest.raises(InputError, match="gangs"):
        best_fit(replace(ROUND, slices=np.array([2, 1])))


def test_a_model_on_nodes_is_the_best_without_groups():
    """Of 40 tiny rounds; with groups it may be more."""
    for seed in range(40):
        round_, best = alone(seed), best_tried(alone(seed))
        if best == 0.0:
            continue  # nothing fits anywhere
        found = whole_on_nodes(round_, 0.0, 10.0)
        assert found.objective >= best * (1 - 1e-6) - 1e-9
        if (round_.group < 0).all():
            assert found.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_relaxed_prices_by_hand():
    """Two and a half small tasks have the 5 GPUs, and their CPUs are not for the large ones."""
    # Of 14 CPUs 11.5 are left for large tasks: three and five sixths of the fourth, worth 2. A CPU
    # is 2/3, and 2 GPUs what the third small task is worth beyond its CPU: 1 - 2/3.
    prices = np.array([[2 / 3, 0.0], [2 / 3, 1 / 6]])
    assert relaxed_prices(ROUND) == pytest.approx(prices)
