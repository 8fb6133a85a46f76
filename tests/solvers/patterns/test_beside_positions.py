"""Patterns beside the exact model of positions and models by node; the same plan on any machine."""

import time

import numpy as np
import pytest

from both_rounds import SPEED, both_rounds
from ronda.formulations.options.build import build
from ronda.formulations.positions.variables import NODE_SHARE
from ronda.instances import clock
from ronda.instances.generate.tasks import azure_like, blocks, openb_like
from ronda.instances.tasks.check import check_tasks
from ronda.solvers.decision.by_positions import allocate_on_nodes
from ronda.solvers.patterns.answer import solve_tasks
from ronda.solvers.prices.dual import Search

GAP = 1e-4
MORE = [pytest.param(n, marks=pytest.mark.soak) for n in (16, 20, 25, 30)]


@pytest.mark.parametrize("nodes", [4, 8, 12, *MORE])
def test_the_best_of_positions_is_between_plan_and_bound(nodes):
    """One cluster told in two ways: jobs with needs of hosts, and tasks with resources."""
    for seed in range(2):
        jobs, tasks = both_rounds(nodes, seed)
        table = build(jobs)
        number = np.array([int(state.job.id) for state in table.jobs])
        speed = np.array([SPEED[pool.gpu_type.name] for pool in table.pools])
        values = tasks.value[number[table.job]] * speed[table.pool]
        exact = allocate_on_nodes(jobs, table, values, Search(gap=GAP))
        # The model of positions takes off what nodes in use cost, which is next to nothing.
        cost = NODE_SHARE * values.max() * nodes
        plan = solve_tasks(tasks, gap=GAP)
        assert check_tasks(tasks, plan) == []
        assert exact.bound - exact.objective <= 1.01 * GAP * exact.bound
        assert plan.bound >= exact.objective * (1 - 1e-9)
        assert plan.objective <= exact.bound + cost
        assert plan.gap <= 0.025


class Slow:
    """A clock by which all takes ten times as long."""

    @staticmethod
    def perf_counter():
        """Return ten times the seconds."""
        return 10.0 * time.perf_counter()


@pytest.mark.parametrize("make", [openb_like, azure_like, blocks])
def test_a_slow_clock_changes_no_plan(make, monkeypatch):
    """Where the deadline is far, work is counted, not seconds."""
    round_ = make(50, 400, seed=1)
    first = solve_tasks(round_, deadline=1e6)
    monkeypatch.setattr(clock, "time", Slow)
    again = solve_tasks(round_, deadline=1e6)
    assert again.task.tolist() == first.task.tolist()
    assert again.node.tolist() == first.node.tolist()
    assert (again.objective, again.bound, again.stop) == (first.objective, first.bound, first.stop)
    assert again.node_price.tolist() == first.node_price.tolist()
