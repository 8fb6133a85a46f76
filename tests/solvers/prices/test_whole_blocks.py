"""Branching on whole blocks: the optimum of the model in one piece."""

import numpy as np
import pytest

from ronda.formulations.allocation.pyomo_model import build_separable
from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable
from ronda.instances.clock import Deadline
from ronda.instances.plan import StopReason
from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.exact.linear_form import Effort
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import solve_separable


def nodes_of_four(jobs, watts, *, count=4):
    """Return jobs of one GPU, worth 1 each, on nodes of 4 GPUs that draw 10 W each."""
    return Separable(
        start=np.arange(jobs + 1),
        value=np.ones(jobs),
        use=Uses.of([np.ones(jobs), np.zeros(jobs)]),
        capacity=np.array([0.0, watts]),
        names=("gpus", "watts"),
        must=np.zeros(jobs, dtype=bool),
        block_value=np.zeros(1),
        block_use=np.array([[-4.0], [10.0]]),
        block_count=np.array([float(count)]),
        block_integer=np.array([True]),
    )


def random_problem(seed):
    """Return jobs of three options on two kinds of nodes that share a limit on power."""
    rng = np.random.default_rng(seed)
    jobs = int(rng.integers(13, 17))
    gpus = np.tile([1.0, 2.0, 4.0], jobs)
    return Separable(
        start=np.arange(0, 3 * jobs + 1, 3),
        value=np.repeat(rng.uniform(1, 4, jobs), 3) * gpus ** np.repeat(rng.uniform(0, 1, jobs), 3),
        use=Uses.of([gpus, gpus * rng.uniform(1, 2, 3 * jobs)]),
        capacity=np.array([0.0, rng.uniform(10, 60)]),
        names=("gpus", "watts"),
        must=np.zeros(jobs, dtype=bool),
        block_value=-rng.uniform(0, 1, 2),
        block_use=np.array([[-4.0, -8.0], rng.uniform(2, 6, 2)]),
        block_count=rng.integers(1, 5, 2).astype(float),
        block_integer=np.ones(2, dtype=bool),
    )


def test_half_a_node_is_no_node():
    """25 W wake 2 1/2 nodes, 10 GPUs, in the dual, but 2 nodes and 8 GPUs in truth."""
    answer = solve_separable(nodes_of_four(14, 25.0))
    assert answer.dual.bound == pytest.approx(10.0)
    assert (answer.objective, answer.bound) == pytest.approx((8.0, 8.0))
    assert answer.blocks.tolist() == [2.0]
    assert answer.stop in (StopReason.GAP, StopReason.COMPLETE)


def test_out_of_time_there_is_an_answer_at_once():
    """Without time the number of nodes is what jobs ask for, rounded down; the bound is true."""
    answer = solve_separable(nodes_of_four(14, 25.0), Search(deadline=Deadline(1e-9)))
    assert answer.stop is StopReason.TIME_LIMIT
    assert answer.objective <= 8.0 <= answer.bound


@pytest.mark.parametrize("first", [0, pytest.param(10, marks=pytest.mark.soak)])
def test_same_optimum_as_in_one_piece(first):
    """Random problems with two kinds of nodes: the optimum that HiGHS finds for all of it."""
    for seed in range(first, first + 10):
        problem = random_problem(seed)
        answer = solve_separable(problem, Search(gap=1e-9))
        assert solve(build_separable(problem), Effort(gap=0)).objective == pytest.approx(
            answer.objective, rel=1e-7
        )
        assert answer.bound >= answer.objective * (1 - 1e-12)
        assert (problem.excess(answer.chosen, answer.blocks) <= 1e-6).all()
        assert (answer.blocks == np.rint(answer.blocks)).all()
        assert ((answer.blocks >= 0) & (answer.blocks <= problem.block_count)).all()


def test_few_jobs_are_weighed_with_the_nodes(monkeypatch):
    """With or without branching the optimum is the same; the gap covers parts never searched."""
    for seed in (*range(10), 33):  # of the last one the optimum is in a part that is left
        problem = random_problem(seed)
        branched = solve_separable(problem, Search(gap=0.02))
        monkeypatch.setattr("ronda.solvers.prices.engine.FEW_JOBS", 100)
        whole = solve_separable(problem, Search(gap=1e-9))
        monkeypatch.undo()
        assert branched.objective <= whole.objective * (1 + 1e-9)
        assert whole.objective <= branched.bound * (1 + 1e-8)  # numbers keep 30 bits
        assert branched.bound - branched.objective <= 0.02 * branched.bound * (1 + 1e-9)
