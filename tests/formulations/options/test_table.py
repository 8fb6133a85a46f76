"""Rows of what runs now, of an earlier plan, and those that another one beats."""

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.options.build import build
from ronda.formulations.options.table import rows_of, running_rows, unbeaten
from ronda.instances import generate
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan
from ronda.solvers.policies.optimising.genetic import Genetic


def test_running_rows_are_the_current_ones():
    """Running jobs have the row that they run on, waiting ones none."""
    round_ = generate.round(jobs=24, seed=1)
    table = build(round_)
    rows = running_rows(table)
    runs = np.array([state.allocation is not None for state in table.jobs])
    assert ((rows >= 0) == runs).all()
    assert table.current[rows[runs]].all()
    assert (table.job[rows[runs]] == np.flatnonzero(runs)).all()


def test_rows_of_a_plan_are_its_options():
    """Each job of the plan gets the row of its option; options that are gone get none."""
    round_ = generate.round(jobs=24, severity="tight", seed=1)
    table = build(round_)
    plan = Genetic(generations=2).plan(round_, deadline=Deadline(), seed=0)
    rows = rows_of(table, plan)
    for j, state in enumerate(table.jobs):
        held = plan.allocations.get(state.job.id)
        assert (rows[j] >= 0) == (held is not None)
        if held is not None:
            k = rows[j]
            assert (table.gpus[k], table.clock[k]) == (held.option.gpus, held.option.clock)
            assert table.batch[k] == held.option.batch
    gone = {
        job: msgspec.structs.replace(
            a, option=msgspec.structs.replace(a.option, clock=0.123, rate=9.0)
        )
        for job, a in plan.allocations.items()
    }
    assert (rows_of(table, msgspec.structs.replace(plan, allocations=gone)) == -1).all()


def test_jobs_that_must_run_keep_their_row():
    """Even a plan that stops them leads to the row that they run on."""
    for seed in range(60):
        round_ = generate.tiny_round(seed)
        table = build(round_)
        empty = Plan(policy="genetic")
        rows = rows_of(table, empty)
        assert ((rows >= 0) == table.must_run).all()


def test_unbeaten_keeps_one_of_equal_options():
    """An option goes if another of its group is worth as much and costs no more of anything."""
    group = np.array([0, 0, 0, 1, 1])
    value = np.array([3.0, 3.0, 2.0, 1.0, 2.0])
    costs = np.array([[2.0, 2.0, 3.0, 1.0, 1.0], [5.0, 5.0, 1.0, 1.0, 2.0]])
    # 1 equals 0; 2 costs less of the second resource; 3 costs less of the second than 4
    assert unbeaten(group, value, costs).tolist() == [True, False, True, True, True]
    assert unbeaten(group, value, costs[:1]).tolist() == [True, False, False, False, True]


def test_unbeaten_in_one_large_group():
    """600 options that cost what they are worth, and the same again: the copies go."""
    value = np.tile(np.arange(600.0), 2)
    kept = unbeaten(np.zeros(1200, dtype=int), value, np.stack([value, value]))
    assert kept.tolist() == [True] * 600 + [False] * 600


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 3), st.integers(0, 3)),
        max_size=40,
    )
)
def test_unbeaten_by_trying_all_pairs(rows):
    """Better or equal in all beats, unless equal in all: then the first of them does."""
    group, value, *costs = np.array(rows, dtype=int).reshape(-1, 4).T

    def beats(a, b):
        """Tell whether option a beats option b."""
        worse = value[a] < value[b] or any(cost[a] > cost[b] for cost in costs)
        same = value[a] == value[b] and all(cost[a] == cost[b] for cost in costs)
        return group[a] == group[b] and not worse and (a < b if same else a != b)

    expected = [not any(beats(a, b) for a in range(len(rows))) for b in range(len(rows))]
    assert unbeaten(group, value.astype(float), np.array(costs, dtype=float)).tolist() == expected
