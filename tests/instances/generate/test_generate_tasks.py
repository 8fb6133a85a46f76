"""Generated rounds of tasks: what is asked for is there, what runs fits, and twice is the same."""

import hashlib
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.instances.errors import InputError
from ronda.instances.generate.tasks import TaskMix, azure_like, blocks, openb_like

MAKERS = (openb_like, azure_like, blocks)


def digest(round):
    """Return a hash of all arrays of a round."""
    hashed = hashlib.sha256()
    for field in fields(round):
        part = getattr(round, field.name)
        hashed.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return hashed.hexdigest()[:16]


@settings(max_examples=40, deadline=None)
@given(
    make=st.sampled_from(MAKERS),
    nodes=st.integers(1, 60),
    tasks=st.integers(1, 400),
    seed=st.integers(0, 2**40),
    running=st.sampled_from((0.0, 0.3, 1.0)),
    gangs=st.sampled_from((0.0, 0.2)),
    elastic=st.sampled_from((0.0, 0.5)),
)
def test_what_runs_fits(make, nodes, tasks, seed, running, gangs, elastic):
    """Nodes hold what runs, groups are apart, gangs are whole, and one way of a job runs."""
    mix = TaskMix(running=running, gangs=gangs, elastic=elastic)
    made = make(nodes, tasks, seed, mix)
    assert made.nodes == nodes
    job = np.arange(tasks) if made.job is None else made.job
    assert len(set(job.tolist())) == tasks
    left = made.capacity[made.node_kind].copy()
    apart = set()
    for task, node in zip(made.held_task.tolist(), made.held_node.tolist(), strict=True):
        shape, group = made.shape[task], int(made.group[task])
        left[node] -= made.use[shape]
        assert made.speed[shape, made.pool[made.node_kind[node]]] > 0
        key = ("group", group, node) if group >= 0 else ("task", task, node)
        assert key not in apart
        apart.add(key)
    assert left.min() >= 0
    held, slices = np.unique(made.held_task, return_counts=True)
    assert (slices == made.slices[made.shape[held]]).all()
    assert len(set(job[held].tolist())) == len(held)
    assert (made.value > 0).all()
    assert ((made.move_cost > 0) <= np.isin(job, job[held])).all()


def test_shares_are_as_asked():
    """Of 10,000 jobs 45 % run, 30 % are in groups of 2 or more equal jobs, and some are elastic."""
    made = openb_like(1000, 10_000, 3, TaskMix(running=0.45))
    assert len(made.held_task) == 4500
    grouped = made.group >= 0
    assert 0.28 < grouped.mean() <= 0.3
    sizes = np.bincount(made.group[grouped])
    assert sizes.min() >= 2
    assert all(len(set(made.shape[made.group == g].tolist())) == 1 for g in range(20))
    assert np.allclose(made.move_cost[made.held_task], 0.03 * made.value[made.held_task], atol=1e-6)
    assert made.job is None
    mixed = openb_like(1000, 10_000, 3, TaskMix(gangs=0.01, elastic=0.2, grouped=0.0))
    ways = np.bincount(mixed.job)
    assert len(ways) == 10_000
    assert 0.18 < (ways > 1).mean() < 0.22
    assert set(ways.tolist()) == {1, 2, 3}
    assert 0.005 < (mixed.slices[mixed.shape] > 1).mean() < 0.015
    triple = np.flatnonzero(ways == 3)[0]
    small, twice, fourth = mixed.use[mixed.shape[mixed.job == triple]]
    assert (twice == 2 * small).all()
    assert (fourth == 4 * small).all()


def test_openb_asks_for_what_the_pods_ask_for():
    """Shares of nodes and pods of openb: 549 of 1,523 nodes are G2; 9.3 % of pods are the first."""
    made = openb_like(1523, 40_000)
    assert made.count[made.kinds.index("G2x8-96c-384g")] == 549
    # 756 + 313 pods of 3,152 mCPU and 5,600 MiB on more than half a GPU, of 8,152, no model named.
    same = (made.use == [3152, 5600, 64]).all(axis=1) & (made.slices == 1)
    anywhere = same & (made.speed > 0)[:, 1:].all(axis=1)
    assert abs(anywhere[made.shape].mean() - 0.131) < 0.01


def test_the_same_arguments_give_the_same_arrays():
    """On every processor: values are rounded, and all else is drawn in whole numbers."""
    mix = TaskMix(running=0.4, gangs=0.02, elastic=0.1)
    found = [digest(make(50, 500, 7, mix)) for make in MAKERS]
    assert found == ["03944b3989737c5d", "1c1564d8a685006f", "639ec3fe56f746b9"]
    assert digest(openb_like(50, 500, 8, mix)) != found[0]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"nodes": 0}, "nodes: found 0"),
        ({"tasks": 1 << 25}, "tasks: found 33554432"),
        ({"seed": -1}, "seed: found -1"),
        ({"running": 1.5}, "running: found 1.5"),
        ({"grouped": float("nan")}, "grouped: found NaN"),
        ({"gangs": 0.7, "elastic": 0.4}, "elastic: found 0.4"),
        ({"most_disrupted": -1}, "most_disrupted: found -1"),
    ],
)
def test_what_cannot_be_is_refused(given, found):
    """In one line that names the parameter."""
    size = {name: given.pop(name) for name in ("nodes", "tasks", "seed") if name in given}
    with pytest.raises(InputError, match=found):
        blocks(**size, mix=TaskMix(**given))
