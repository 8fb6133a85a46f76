"""Pyomo models through HiGHS: solutions, statuses, deadlines, duals, files, conflicts."""

import time
from itertools import product

import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ronda
from ronda.instances import generate
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.exact.from_pyomo import linear_form, solve
from ronda.solvers.exact.highs import solve_form
from ronda.solvers.exact.infeasible import components, conflicts
from ronda.solvers.exact.linear_form import Effort
from tests.helpers import knapsacks


def knapsack(values, sizes, room):
    """Return max v'x with s'x <= room, x binary."""
    model = pyo.ConcreteModel("knapsack")
    items = range(len(values))
    model.take = pyo.Var(items, domain=pyo.Binary)
    model.room = pyo.Constraint(expr=sum(sizes[i] * model.take[i] for i in items) <= room)
    model.worth = pyo.Objective(
        expr=sum(values[i] * model.take[i] for i in items), sense=pyo.maximize
    )
    return model


def hard(items=150, rows=12):
    """Return a model that HiGHS does not solve in seconds."""
    return knapsacks.knapsack(items, rows, seed=0)


def test_solution_is_loaded_into_the_model():
    """Of items worth 6, 5, 4 and sizes 4, 3, 2 in a room of 5 the last two are taken."""
    model = knapsack([6, 5, 4], [4, 3, 2], 5)
    outcome = solve(model, Effort(gap=0))
    assert [v.value for v in model.take.values()] == [0, 1, 1]
    assert (outcome.objective, outcome.bound) == (9, 9)
    assert (outcome.stop, outcome.status) == (StopReason.COMPLETE, SolutionStatus.OPTIMAL)
    assert outcome.message == "Optimal"
    assert (outcome.variables, outcome.constraints) == (3, 1)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 20), st.integers(1, 9)), min_size=1, max_size=7))
def test_minimum_equals_brute_force(items):
    """A covering problem with an offset and a range has the optimum that brute force finds."""
    n = len(items)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(n), domain=pyo.Binary)
    total = sum(size for _, size in items)
    weight = sum(size * model.x[i] for i, (_, size) in enumerate(items))
    model.cover = pyo.Constraint(expr=(total // 3, weight + 1, total))
    model.cost = pyo.Objective(expr=7 + sum(c * model.x[i] for i, (c, _) in enumerate(items)))
    costs = [
        7 + sum(c for (c, _), x in zip(items, xs, strict=True) if x)
        for xs in product((0, 1), repeat=n)
        if total // 3 <= 1 + sum(s for (_, s), x in zip(items, xs, strict=True) if x) <= total
    ]
    outcome = solve(model, Effort(gap=0))
    if not costs:
        assert outcome.stop is StopReason.INFEASIBLE
    else:
        assert outcome.objective == pytest.approx(min(costs), rel=1e-9)
        assert outcome.bound == pytest.approx(min(costs), rel=1e-6)


def test_models_without_integers_are_solved_as_well():
    """Max x + y with x + 2y <= 4, x <= 3 is 3.5."""
    model = pyo.ConcreteModel()
    model.x, model.y = pyo.Var(bounds=(0, 3)), pyo.Var(bounds=(0, None))
    model.both = pyo.Constraint(expr=model.x + 2 * model.y <= 4)
    model.sum = pyo.Objective(expr=model.x + model.y, sense=pyo.maximize)
    outcome = solve(model)
    assert outcome.objective == pytest.approx(3.5)
    assert outcome.bound == pytest.approx(3.5)
    assert outcome.status is SolutionStatus.OPTIMAL


def test_fixed_and_repeated_variables_count_as_they_should():
    """A fixed variable is a constant; a variable that appears twice has the sum of its terms."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2, 3], domain=pyo.Binary)
    model.x[1].fix(1)
    model.room = pyo.Constraint(
        expr=2 * model.x[1] + 2 * model.x[2] + 3 * model.x[3] + model.x[2] <= 5
    )
    model.worth = pyo.Objective(
        expr=10 * model.x[1] + model.x[2] + 2 * model.x[3], sense=pyo.maximize
    )
    form = linear_form(model)
    assert [column.name for column in form.columns] == ["x[2]", "x[3]"]
    assert form.value.tolist() == [3.0, 3.0]
    assert form.row_upper.tolist() == [3.0]
    assert solve(model, Effort(gap=0)).objective == 12


def test_statuses_say_why_and_what():
    """Infeasible and unbounded models have no solution, and say so in HiGHS's words."""
    model = knapsack([1], [1], -1)
    outcome = solve(model)
    assert (outcome.stop, outcome.status) == (StopReason.INFEASIBLE, SolutionStatus.NONE)
    assert outcome.objective is None
    assert model.take[0].value is None
    free = pyo.ConcreteModel()
    free.x = pyo.Var(domain=pyo.NonNegativeIntegers)
    free.least = pyo.Constraint(expr=free.x >= 1)
    free.most = pyo.Objective(expr=free.x, sense=pyo.maximize)
    outcome = solve(free)
    assert outcome.stop is StopReason.ERROR
    assert outcome.message == "Unbounded"


def test_models_that_are_not_linear_are_refused():
    """A product of variables, and a second objective, are errors of the user's."""
    model = knapsack([1, 2], [1, 1], 1)
    model.twist = pyo.Constraint(expr=model.take[0] * model.take[1] <= 1)
    with pytest.raises(InputError, match=r"twist.*linear"):
        solve(model)
    model = knapsack([1, 2], [1, 1], 1)
    model.other = pyo.Objective(expr=model.take[0])
    with pytest.raises(InputError, match="exactly one"):
        solve(model)


def test_a_gap_is_a_reason_to_stop():
    """With a gap of 5 % the search stops early, with bound and solution that far apart at most."""
    outcome = solve(hard(), Effort(gap=0.05))
    assert outcome.stop is StopReason.GAP
    assert outcome.status is SolutionStatus.OPTIMAL
    assert outcome.objective < outcome.bound <= outcome.objective * 1.05


def test_time_limit_is_a_success_with_a_gap():
    """HiGHS stops in time with solution, bound and a trace of incumbents that rise."""
    deadline, began = Deadline(1.0), time.process_time()
    outcome = solve(hard(), Effort(gap=0, deadline=deadline, reserve_s=0.1))
    assert time.process_time() - began < 3.0  # without the limit it takes minutes
    assert outcome.stop is StopReason.TIME_LIMIT
    assert outcome.status is SolutionStatus.FEASIBLE
    assert outcome.objective < outcome.bound
    seconds, worths = zip(*outcome.incumbents, strict=True)
    assert list(seconds) == sorted(seconds)
    assert list(worths) == sorted(set(worths))
    assert worths[-1] == pytest.approx(outcome.objective)


def test_no_time_left_is_said():
    """If the reserve is all that is left nothing is solved."""
    outcome = solve(hard(), Effort(deadline=Deadline(0.05), reserve_s=0.06))
    assert outcome.stop is StopReason.TIME_LIMIT
    assert outcome.status is SolutionStatus.NONE
    assert outcome.x is None


def test_warm_start_is_the_first_incumbent():
    """Values of the variables are where the search starts."""
    model = hard()
    solve(model, Effort(gap=0.01))
    known = [v.value for v in model.take.values()]
    worth = pyo.value(model.worth)
    again = hard()
    for variable, value in zip(again.take.values(), known, strict=True):
        variable.set_value(value)
    outcome = solve(again, Effort(gap=0, deadline=Deadline(0.5)))
    assert outcome.incumbents[0][1] == pytest.approx(worth)
    assert solve(hard(), Effort(gap=0, deadline=Deadline(0.5))).incumbents[0][1] < worth


def test_same_seed_same_solution():
    """Two runs with one seed take the same way, to the last incumbent."""
    first, second = (solve(hard(items=50, rows=5), Effort(gap=4e-3, seed=3)) for _ in range(2))
    assert first.x.tolist() == second.x.tolist()
    assert first.nodes == second.nodes
    assert [w for _, w in first.incumbents] == [w for _, w in second.incumbents]


def conflicting():
    """Return a model in which two jobs that must run need more than there is."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(["a", "b", "c"], domain=pyo.Binary)
    model.must = pyo.Constraint(["a", "b"], rule=lambda m, j: m.x[j] == 1)
    model.may = pyo.Constraint(expr=model.x["c"] <= 1)
    model.gpus = pyo.Constraint(expr=3 * model.x["a"] + 2 * model.x["b"] + model.x["c"] <= 4)
    model.worth = pyo.Objective(expr=model.x["c"], sense=pyo.maximize)
    return model


def test_conflicts_are_named():
    """Exactly the constraints that cannot hold together are named."""
    model = conflicting()
    (found,) = conflicts(linear_form(model), Deadline())
    assert set(found.constraints) == {"must[a]", "must[b]", "gpus"}
    assert "cannot all hold" in found.message


def test_conflicts_of_whole_numbers_are_named_as_well():
    """2x + 2y = 3 has solutions, but none in whole numbers."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2, 3, 4], domain=pyo.Integers, bounds=(0, 9))
    model.fine = pyo.Constraint([1, 2, 3], rule=lambda m, i: m.x[i] + m.x[i + 1] >= 1)
    model.odd = pyo.Constraint(expr=2 * model.x[1] + 2 * model.x[2] == 3)
    model.also_fine = pyo.Constraint(expr=model.x[3] <= 4)
    model.worth = pyo.Objective(expr=model.x[4])
    (found,) = conflicts(linear_form(model), Deadline())
    assert found.constraints == ("odd",)
    assert "whole numbers" in found.message


def test_a_conflict_lies_within_one_component():
    """Of two pools that share nothing only the one with the odd row is named."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2, 3, 4], domain=pyo.Integers, bounds=(0, 9))
    model.even = pyo.Constraint(expr=2 * model.x[1] + 2 * model.x[2] == 4)
    model.odd = pyo.Constraint(expr=2 * model.x[3] - 2 * model.x[4] == 3)
    model.less = pyo.Constraint(expr=model.x[3] - model.x[4] >= 0)
    model.worth = pyo.Objective(expr=model.x[1])
    form = linear_form(model)
    assert sorted(map(len, components(form))) == [1, 2]
    assert conflicts(form, Deadline())[0].constraints == ("odd",)


def test_models_with_a_solution_have_no_conflict():
    """Nothing is named if nothing conflicts."""
    assert conflicts(linear_form(knapsack([1], [1], 1)), Deadline()) == []


def test_many_solves_do_not_pile_up():
    """HiGHS objects are freed, callbacks and all."""
    psutil = pytest.importorskip("psutil")
    form = linear_form(knapsack(list(range(1, 30)), list(range(2, 31)), 100))

    def resident():
        for _ in range(50):
            solve_form(form, Effort(gap=0))
        return psutil.Process().memory_info().rss

    resident()
    before = resident()
    assert resident() - before < 2 << 20


def test_translation_is_fast():
    """Arrays of a model with 10,000 variables take far less than a second."""
    model = knapsack([1.0] * 10_000, [1.0] * 10_000, 5)
    began = time.process_time()
    linear_form(model)
    assert time.process_time() - began < 1.0


def test_cp_sat_proves_nothing_that_is_not_so():
    """With its presolve CP-SAT 9.15 called 6.5763 the optimum of this round."""
    round_ = generate.tiny_round(219)
    assert ronda.solve(round_, "cp-sat").bound >= ronda.solve(round_, "prices").objective
