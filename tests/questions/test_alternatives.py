"""The best different plans of a round: those of brute force, all valid, all different."""

from itertools import product

import numpy as np
import pytest

import ronda
from every_choice import rows_by_job
from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import within
from ronda.formulations.options.table import rows_of
from ronda.instances import generate
from ronda.solvers.decision.plan import Question
from ronda.solvers.decision.realise import realise


def by_brute_force(round_, number):
    """Return what the best different choices are worth, of those that nodes have room for."""
    question = Question.of(round_, "rank")
    table, values = question.table, question.values
    case = make_case(round_, table, values)
    ways = [[k for k in own if k < 0 or k in case.rows] for own in rows_by_job(table)]
    every = [np.array(choice) for choice in product(*ways)]
    every.sort(key=lambda chosen: -values[chosen[chosen >= 0]].sum())
    found = []
    for chosen in every:
        if len(found) == number:
            break
        if not within(case, chosen):
            continue
        placed = realise(round_, table, values, chosen, watt_value=0.0, fill=False)
        if (rows_of(table, ronda.Plan(allocations=placed.allocations)) == chosen).all():
            found.append(float(values[chosen[chosen >= 0]].sum()))
    return found


@pytest.mark.parametrize("spec", ["milp(gap=0)", "milp(gap=0, solver=scip)", "cp-sat(gap=0)"])
@pytest.mark.parametrize("seed", [1, 4, 9])
def test_they_are_those_of_brute_force(seed, spec):
    """Of tiny rounds: the same worth, one after the other, valid, and no two the same."""
    round_ = generate.tiny_round(seed)
    plans = ronda.alternatives(round_, spec, number=6, within=1.0)
    expected = by_brute_force(round_, 6)
    assert [plan.objective for plan in plans] == pytest.approx(expected, rel=1e-7)
    assert all(ronda.check(round_, plan) == [] for plan in plans)
    ways = [{job: a.option for job, a in plan.allocations.items()} for plan in plans]
    assert all(ways[i] != ways[j] for i in range(len(ways)) for j in range(i))
    assert plans[0].bound >= plans[0].objective


@pytest.mark.parametrize("seed", [3, 7, 13])
def test_none_is_missed_where_the_order_is_rough(seed):
    """With a gap of half a plan may come before one that does the same and more: it stays."""
    round_ = generate.tiny_round(seed)
    plans = ronda.alternatives(round_, "milp(gap=0.5)", number=1000, within=1)
    expected = by_brute_force(round_, 1000)
    assert [plan.objective for plan in plans] == pytest.approx(expected, rel=1e-7)


def test_none_is_farther_from_the_best_than_was_asked():
    """With a share between the third and the fourth there are three; the first is the best."""
    round_ = generate.tiny_round(4)
    worths = [p.objective for p in ronda.alternatives(round_, "milp(gap=0)", number=4, within=1)]
    assert worths[0] == pytest.approx(ronda.solve(round_, "milp(gap=0)").objective, rel=1e-7)
    share = 1 - (worths[2] + worths[3]) / 2 / worths[0]
    near = ronda.alternatives(round_, "milp(gap=0)", number=4, within=share)
    assert [plan.objective for plan in near] == pytest.approx(worths[:3])
    assert ronda.alternatives(round_, "milp", deadline=1e-9) == []


def test_policies_without_one_model_are_refused():
    """In one line, with those that can."""
    round_ = generate.tiny_round(1)
    for spec in ("prices", "fifo", "milp+fused"):
        with pytest.raises(ronda.InputError, match="milp or cp-sat or sia-like"):
            ronda.alternatives(round_, spec)
    with pytest.raises(ronda.InputError, match="placement=exact"):
        ronda.alternatives(round_, "milp(placement=exact)")
    with pytest.raises(ronda.InputError, match="number"):
        ronda.alternatives(round_, number=0)
