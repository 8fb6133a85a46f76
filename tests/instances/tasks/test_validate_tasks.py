"""Rules for rounds of tasks: problems are named with their place, and what fits nowhere is told."""

from dataclasses import replace

import numpy as np
import pytest

from ronda.instances.errors import InputError
from ronda.instances.generate.tasks import TaskMix, azure_like, blocks, openb_like
from ronda.instances.tasks.validate import unplaceable, validate_tasks

ONES, NAN = np.ones(6), float("nan")


def with_(array, index, value):
    """Return a copy of an array with another value at an index."""
    made = np.array(array)
    made[index] = value
    return made


@pytest.mark.parametrize("make", [openb_like, azure_like, blocks])
def test_generated_rounds_are_valid(make):
    """Whatever runs, and with gangs and elastic jobs."""
    made = make(60, 600, 1, TaskMix(running=0.6, gangs=0.03, elastic=0.3))
    assert len(made.held_task) > 50
    validate_tasks(made)


def test_arrays_become_64_bit(small):
    """Smaller numbers and lists will do; the round itself stays as it is."""
    given = small(shape=np.array([0, 0, 1, 0, 2, 3], dtype=np.uint8), value=[10, 8, 6, 5, 9, 20])
    made = validate_tasks(given)
    assert made.shape.dtype == np.int64
    assert made.value.dtype == np.float64
    assert given.shape.dtype == np.uint8
    none = validate_tasks(small(held_task=np.array([]), held_node=[]))
    assert none.held_task.dtype == np.int64


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("kinds", ("old", "old"), 'kinds: found ["old", "old"]; expected names that differ'),
        ("pools", (), "pools: found []"),
        ("resources", ("cpu", "g\u202epu"), "resources: found"),
        (
            "capacity",
            np.ones((2, 3)),
            "capacity: found numbers of the type float64; expected whole",
        ),
        (
            "capacity",
            np.ones((2, 3), dtype=int),
            "capacity: found the shape (2, 3); expected 2 by 2",
        ),
        ("capacity", [[4, 8], [4, -1]], "capacity[1, 1]: found -1; expected 0 to 35184372088832"),
        ("count", [2, 0], "count[1]: found 0; expected 1 to 262144"),
        ("count", [2**17, 2**18], "count: found 393216 nodes; expected at most 262144"),
        ("pool", [0, 2], "pool[1]: found 2; expected 0 to 1"),
        ("use", [[2, 1], [1, 4], [4, 2], [0, 0]], "use[3]: found nothing of any resource"),
        (
            "use",
            np.full((4, 2), 2**63, dtype=np.uint64),
            "use: found 9223372036854775808; expected",
        ),
        ("slices", [1, 2, 1, 0], "slices[3]: found 0"),
        ("speed", np.full((4, 2), NAN), "speed[0, 0]: found nan (and 7 more)"),
        ("shape", [0, 0, 1, 0, 2, 4], "shape[5]: found 4; expected 0 to 3"),
        ("shape", [0, 0, 1, 0, 2, 1.5], "shape: found numbers of the type float64"),
        ("value", [1.0, 2.0], "value: found the shape (2,); expected 6 numbers"),
        ("value", with_(ONES, 2, 0.0), "value[2]: found 0.0"),
        ("value", with_(ONES, 2, np.inf), "value[2]: found inf"),
        ("value", ["a"] * 6, "value: found numbers of the type <U1"),
        ("group", [0, 0, -1, -1, -1, 6], "group[5]: found 6; expected -1 to 5"),
        ("group", [0, 0, -1, 1, 2, -1], "group[3]: found 1; expected 2, as another way of its job"),
        ("job", [0, 1, 2, 3, 3, -1], "job[5]: found -1; expected 0 to 5"),
        ("move_cost", with_(ONES, 5, -1.0), "move_cost[5]: found -1.0"),
        ("held_task", [6], "held_task[0]: found 6; expected 0 to 5"),
        ("held_node", [-1], "held_node[0]: found -1; expected 0 to 2"),
        ("held_node", [0, 1], "held_node: found the shape (2,); expected 1 numbers"),
        (
            "held_task",
            [2],
            "task 2: found a task that has 1 slices on nodes, of 2; expected one that",
        ),
        ("held_task", [5], "task 5: found a task that may not run on node 0 of a"),
        ("most_disrupted", -1, "most_disrupted: found -1; expected an integer, at least 0"),
        ("most_disrupted", 1.5, "most_disrupted: found 1.5; expected an integer"),
    ],
)
def test_each_problem_is_named_with_its_place(small, name, value, found):
    """In one line, with what was found and expected."""
    with pytest.raises(InputError) as error:
        validate_tasks(small(**{name: value}), "r.npz")
    text = str(error.value)
    assert text.startswith("r.npz, ")
    assert found in text
    assert "\n" not in text


def test_nodes_hold_what_runs_and_ways_lose_the_same(small):
    """Two large tasks on one node, a group together, and ways of one job with other costs."""
    full = small(held_task=[0, 3], held_node=[0, 0], shape=[2, 0, 1, 2, 2, 3])
    with pytest.raises(InputError, match="a node that has 4 of cpu, and its tasks take 8"):
        validate_tasks(full)
    with pytest.raises(InputError, match="group 0: found"):
        validate_tasks(small(held_task=[0, 1], held_node=[0, 0]))
    ways = small(held_task=[3], held_node=[0], move_cost=[0, 0, 0, 0.5, 0.4, 0])
    with pytest.raises(InputError, match=r"move_cost\[4\]: found 0.4; expected 0.5"):
        validate_tasks(ways)
    validate_tasks(replace(ways, move_cost=[0, 0, 0, 0.5, 0.5, 0]))


def test_what_fits_nowhere_is_told_with_the_resource(small):
    """A resource that no node of a pool has, two that none has at once, and too few nodes."""
    assert unplaceable(small()) == []
    use = np.array([[2, 1], [1, 4], [4, 9], [5, 2]])
    told = unplaceable(small(use=use, count=np.array([1, 1])))
    assert [(each.shape, each.tasks) for each in told] == [(1, 1), (2, 1), (3, 1)]
    few, gpus, cpus = (each.reasons for each in told)
    assert few == tuple(
        f"pool {p}: 1 nodes have room for a slice, and a task has 2" for p in ("a", "b")
    )
    assert gpus == tuple(
        f"pool {p}: a slice takes 9 of gpu, and no node has more than 8" for p in ("a", "b")
    )
    assert cpus == ("pool b: a slice takes 5 of cpu, and no node has more than 4",)
    either = small(capacity=np.array([[2, 8], [4, 1]]), pool=np.array([0, 0]), pools=("a", "b"))
    both = unplaceable(either)[0]
    assert both.reasons[0] == "pool a: no node has enough of cpu and gpu at once"
    assert both.reasons[1] == "pool b: it has no nodes"
    nowhere = small(speed=np.zeros((4, 2)))
    assert unplaceable(nowhere)[0].reasons == ("it may run in no pool",)
