"""Problems in independent parts: which jobs and resources hang together."""

import dataclasses
import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable, independent


def problem_of(seed, resources):
    """Return a problem of ten jobs, each of which uses one resource or two, and a kind of block."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, 10)
    owner = np.repeat(np.arange(10), counts)
    own = rng.integers(0, resources, (2, 10))
    own[1] = np.where(rng.random(10) < 0.2, own[1], own[0])
    use = np.zeros((resources, len(owner)))
    use[own[rng.integers(0, 2, len(owner)), owner], np.arange(len(owner))] = 2.0
    return Separable(
        start=np.concatenate([[0], np.cumsum(counts)]),
        value=rng.uniform(1, 2, len(owner)),
        use=Uses.of(use),
        capacity=rng.choice([3.0, 40.0], resources),
        names=tuple(f"r{r}" for r in range(resources)),
        must=np.zeros(10, dtype=bool),
        block_value=np.zeros(1),
        block_use=np.eye(resources, 1),
        block_count=np.ones(1),
        block_integer=np.ones(1, dtype=bool),
    )


def by_graph(problem):
    """Return what hangs together, as sets of resources and jobs, by the graph of both."""
    graph = nx.Graph()
    for r, (use, capacity) in enumerate(zip(problem.use.dense(), problem.capacity, strict=True)):
        most = [use[a:b].max(initial=0) for a, b in itertools.pairwise(problem.start)]
        if sum(most) + problem.block_use[r] @ problem.block_count > capacity:
            graph.add_node(("r", r))
            graph.add_edges_from((("r", r), ("j", j)) for j, n in enumerate(most) if n)
    return {frozenset(found) for found in nx.connected_components(graph)}


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_parts_are_the_connected_components(seed, resources):
    """Jobs that nothing can bind for are a part of their own, without a resource."""
    problem = problem_of(seed, resources)
    expected, parts = by_graph(problem), independent(problem)
    named = {
        frozenset([("r", int(r)) for r in p.resources] + [("j", int(j)) for j in p.jobs])
        for p in parts
        if len(p.resources)
    }
    has_options = {int(j) for j in np.flatnonzero(np.diff(problem.start))}
    bound_jobs = {j for found in expected for kind, j in found if kind == "j"}
    if parts:
        assert named == expected
        free = [p for p in parts if not len(p.resources)]
        assert {int(j) for p in free for j in p.jobs} == has_options - bound_jobs
        for part in parts:
            same = problem.use.dense()[np.ix_(part.resources, part.options)]
            assert (part.problem.use.dense() == same).all()
            assert (part.problem.value == problem.value[part.options]).all()
    else:
        assert len(expected) <= 1


@pytest.mark.parametrize(("cap", "parts"), [(39.9, 0), (40.0, 2)])
def test_shared_cap_joins_only_if_it_can_bind(cap, parts):
    """Two pools of 10 jobs that draw 1 or 2 each: together 40 at most."""
    use = np.zeros((3, 40))
    use[0, :20] = use[1, 20:] = 1.0
    use[2] = np.tile([1.0, 2.0], 20)
    problem = Separable.without_blocks(
        np.arange(0, 42, 2), np.ones(40), use, np.array([5.0, 5.0, cap]), ("a", "b", "cap")
    )
    found = independent(problem)
    assert len(found) == parts
    assert [p.problem.names for p in found] == [("a",), ("b",)][:parts]


def test_blocks_join_what_they_provide():
    """A node that gives GPUs to one pool and draws from the other's watts."""
    problem = problem_of(1, 2)
    apart = np.zeros((2, 10))
    apart[0, :5] = apart[1, 5:] = 2.0
    problem = dataclasses.replace(
        problem,
        start=np.arange(11),
        value=np.ones(10),
        use=Uses.of(apart),
        capacity=np.array([3.0, 3.0]),
    )
    assert len(independent(problem)) == 2
    joined = dataclasses.replace(problem, block_use=np.array([[-1.0], [1.0]]))
    assert independent(joined) == []
