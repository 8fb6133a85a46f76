"""The checker of plans for rounds of tasks: a good plan passes, and each kind of fault is named."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.instances.generate.tasks import TaskMix, azure_like, blocks, openb_like
from ronda.instances.plan import StopReason
from ronda.instances.tasks.arrays import TaskPlan
from ronda.instances.tasks.check import MANY, check_tasks


def ints(*numbers):
    """Return whole numbers as an array."""
    return np.array(numbers, dtype=np.int64)


def plan(pairs, objective, bound=100.0, **fields):
    """Return a plan of pairs of task and node."""
    task, node = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    usual = {"node_price": np.zeros((2, 2)), "stop": StopReason.GAP}
    return TaskPlan(task=task, node=node, objective=objective, bound=bound, **(usual | fields))


GOOD = [(0, 0), (1, 1), (2, 0), (2, 1), (5, 2)]
"""Node 0 has 2 + 1 of 4 CPUs and 1 + 4 of 8 GPUs in use; value 10 + 8 + 6 + 2 x 20 = 64."""


def codes(round, plan):
    """Return the codes of all violations."""
    return {each.code for each in check_tasks(round, plan)}


def test_a_good_plan_has_no_violation(small):
    """Its value, and that of one that moves task 0 to pool b: 10 x 1.5 - 1 + 8 = 22."""
    assert check_tasks(small(), plan(GOOD, 64.0)) == []
    assert check_tasks(small(), plan([(0, 2), (1, 0)], 22.0)) == []
    assert check_tasks(small(), plan([], 0.0)) == []
    assert check_tasks(small(most_disrupted=0), plan(GOOD, 64.0)) == []


@pytest.mark.parametrize(
    ("pairs", "objective", "found"),
    [
        ([(6, 0)], 0.0, "unknown-task: task 6: the round has 6"),
        ([(-1, 0)], 0.0, "unknown-task: task -1: the round has 6"),
        ([(0, 3)], 0.0, "node: node 3: the round has 3"),
        ([(0, -1)], 0.0, "node: node -1: the round has 3"),
        ([(1, 1), (0, 0)], 18.0, "order: pair 0: task 0 comes after task 1"),
        ([(2, 1), (2, 0)], 6.0, "order: pair 0: task 2 comes after task 2"),
        ([(2, 0), (2, 0)], 6.0, "duplicate-node: task 2: is on node 0 twice"),
        ([(2, 0)], 6.0, "gang: task 2: has 1 slices on nodes, of 2"),
        ([(0, 0), (0, 1)], 10.0, "gang: task 0: has 2 slices on nodes, of 1"),
        ([(2, 0), (2, 2)], 6.0, "pool: task 2: is on node 2 of b as well"),
        ([(5, 0)], 0.0, "pool: task 5: may not run on node 0 of a"),
        ([(0, 0), (4, 0)], 19.0, "capacity: node 0: has 4 of cpu, and its tasks take 6"),
        (
            [(1, 0), (2, 0), (2, 1), (3, 0)],
            19.0,
            "capacity: node 0: has 4 of cpu, and its tasks take 5",
        ),
        ([(3, 0), (4, 1)], 14.0, "job: job 3: is placed in 2 ways"),
        ([(0, 0), (1, 0)], 18.0, "group: group 0: has task 1 and one more on node 0"),
        (GOOD, 64.1, "objective: plan: claims 64.1, and its tasks give 64"),
        (GOOD, float("nan"), "objective: plan: claims nan, and its tasks give 64"),
        ([(0, 1)], 10.0, "objective: plan: claims 10, and its tasks give 9"),
    ],
)
def test_each_fault_is_told_with_its_place(small, pairs, objective, found):
    """One line each, with the numbers."""
    assert found in map(str, check_tasks(small(), plan(pairs, objective)))


def test_bounds_prices_and_budgets(small):
    """A bound below the value, odd prices, and more stops and moves than may be."""
    assert codes(small(), plan(GOOD, 64.0, bound=63.9)) == {"bound"}
    assert codes(small(), plan(GOOD, 64.0, bound=float("nan"))) == {"bound"}
    assert codes(small(), plan(GOOD, 64.0, node_price=np.full((2, 2), -1.0))) == {"prices"}
    assert codes(small(), plan(GOOD, 64.0, node_price=np.full((2, 2), np.inf))) == {"prices"}
    assert codes(small(), plan(GOOD, 64.0, node_price=np.zeros((2, 3)))) == {"prices"}
    budget = small(most_disrupted=0)
    assert codes(budget, plan([(0, 1)], 9.0)) == {"disruption"}
    assert codes(budget, plan([], 0.0)) == {"disruption"}
    assert codes(small(most_disrupted=1), plan([(0, 1)], 9.0)) == set()


def test_moves_of_gangs_and_of_jobs_with_ways(small):
    """A gang that leaves one of its nodes moves; so does a job that goes on in another way."""
    gang = small(
        held_task=ints(2, 2), held_node=ints(0, 1), pool=ints(0, 0), move_cost=np.full(6, 0.5)
    )
    assert check_tasks(gang, plan([(2, 0), (2, 1)], 6.0)) == []
    assert check_tasks(gang, plan([(2, 0), (2, 2)], 5.5)) == []
    ways = small(held_task=ints(3), held_node=ints(0), move_cost=np.array([0, 0, 0, 0.5, 0.5, 0]))
    assert check_tasks(ways, plan([(3, 0)], 5.0)) == []
    assert check_tasks(ways, plan([(4, 0)], 8.5)) == []
    assert codes(replace(ways, most_disrupted=0), plan([(4, 0)], 8.5)) == {"disruption"}


def test_sums_do_not_wrap(small):
    """Five tasks of 2^62 on a node: 64-bit sums would be 2^62, which is less than it has."""
    huge = small(
        use=np.array([[2**62, 1], [1, 4], [4, 2], [4, 2]]), shape=ints(0, 0, 0, 0, 0), job=None
    )
    huge = replace(
        huge, capacity=np.array([[2**62, 99], [4, 8]]), value=np.ones(5), group=np.full(5, -1)
    )
    found = check_tasks(huge, plan([(t, 0) for t in range(5)], 5.0))
    assert "capacity" in {each.code for each in found}


def test_many_violations_are_counted():
    """A hundred are told, and how many more there are."""
    made = openb_like(50, 3000, 0)
    task = np.arange(3000)
    bad = TaskPlan(
        task=task,
        node=np.full(3000, 50),
        objective=0.0,
        bound=1.0,
        node_price=np.zeros(made.capacity.shape),
        stop=StopReason.ERROR,
    )
    found = check_tasks(made, bad)
    assert len(found) == MANY + 1
    assert str(found[-1]) == "node: others: 2,900 more"


def first_fit(made):
    """Return the pairs and the value of a plan that keeps what runs and adds what fits."""
    left = made.capacity[made.node_kind].copy()
    pool = made.pool[made.node_kind]
    pairs, used, apart = [], set(), set()
    job = np.arange(made.tasks) if made.job is None else made.job
    ran = {int(job[t]) for t in made.held_task}
    value = 0.0

    def put(task, nodes):
        nonlocal value
        for n in nodes:
            left[n] -= made.use[made.shape[task]]
            apart.add((int(made.group[task]), n))
        pairs.extend((task, n) for n in nodes)
        used.add(int(job[task]))
        value += made.value[task] * made.speed[made.shape[task], pool[nodes[0]]]

    for task in np.unique(made.held_task).tolist():
        put(task, made.held_node[made.held_task == task].tolist())
    for task in range(made.tasks):
        use, slices = made.use[made.shape[task]], int(made.slices[made.shape[task]])
        if int(job[task]) in used or int(job[task]) in ran:
            continue
        for p in np.flatnonzero(made.speed[made.shape[task]] > 0).tolist():
            fit = [
                n
                for n in np.flatnonzero((pool == p) & (left >= use).all(axis=1)).tolist()
                if made.group[task] < 0 or (int(made.group[task]), n) not in apart
            ][:slices]
            if len(fit) == slices:
                put(task, fit)
                break
    return sorted(pairs), value


@settings(max_examples=25, deadline=None)
@given(
    make=st.sampled_from((openb_like, azure_like, blocks)),
    seed=st.integers(0, 999),
    running=st.sampled_from((0.0, 0.4)),
    data=st.data(),
)
def test_a_plan_that_is_broken_somewhere_is_noticed(make, seed, running, data):
    """A plan by first fit is good; one change of a kind makes a violation of that kind."""
    made = make(12, 60, seed, TaskMix(grouped=0.6, running=running, gangs=0.05, elastic=0.2))
    pairs, value = first_fit(made)
    prices = np.zeros(made.capacity.shape)
    good = replace(plan(pairs, value), node_price=prices, bound=value + 1)
    assert check_tasks(made, good) == []
    task, node = good.task, good.node
    k = data.draw(st.integers(0, len(task) - 1))
    one = np.arange(len(task)) == k
    assert "objective" in codes(made, replace(good, objective=value * 1.001))
    assert "bound" in codes(made, replace(good, bound=value * 0.999))
    lost = codes(made, replace(good, task=task[~one], node=node[~one]))
    assert lost & {"objective", "gang"}
    if len(task) > 1:
        assert "order" in codes(made, replace(good, task=task[::-1], node=node[::-1]))
    free = made.capacity[made.node_kind].copy()
    np.subtract.at(free, node, made.use[made.shape[task]])
    crowd = made.use[made.shape[task[k]]] > free
    full = np.flatnonzero(crowd.any(axis=1) & (np.arange(made.nodes) != node[k]))
    if len(full):
        assert "capacity" in codes(made, replace(good, node=np.where(one, full[0], node)))
    shut = np.flatnonzero(made.speed[made.shape[task[k]], made.pool[made.node_kind]] == 0)
    if len(shut):
        assert "pool" in codes(made, replace(good, node=np.where(one, shut[0], node)))
    mates = np.flatnonzero(
        (made.group[task] == made.group[task[k]]) & (made.group[task] >= 0) & ~one
    )
    if len(mates):
        assert "group" in codes(made, replace(good, node=np.where(one, node[mates[0]], node)))
    if running and len(held := np.flatnonzero(np.isin(task, made.held_task))):
        stopped = ~np.isin(task, task[held[0]])
        tight = replace(made, most_disrupted=0)
        assert codes(tight, good) == set()
        assert "disruption" in codes(tight, replace(good, task=task[stopped], node=node[stopped]))
