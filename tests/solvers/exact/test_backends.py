"""Solvers by name: the same optimum, honest statuses, starts, limits, and what is not there."""

import sys
from importlib.util import find_spec

import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.allocation.separable import normalise
from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.generate import round as generated
from ronda.instances.generate import tiny_round
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.exact import backends, by_pyomo
from ronda.solvers.exact.backends import CP_SAT, MIP, SOLVERS, find_solver
from ronda.solvers.exact.from_pyomo import linear_form, solve
from ronda.solvers.exact.linear_form import Effort, form_of
from ronda.solvers.exact.threads import apart
from ronda.solvers.registry import policy
from tests.helpers import knapsacks

HERE = ("highs", "scip", "cbc", CP_SAT)
STARTED = [name for name in HERE if "warm start" not in SOLVERS[name].lacks]


def by(name, model, **effort):
    """Return what a solver makes of a Pyomo model."""
    return solve(model, Effort(**effort), name)


def knapsack():
    """Return a model whose search has several steps, and whose objective has a constant."""
    return knapsacks.knapsack(offset=3.0)


@pytest.fixture(scope="module")
def best():
    """Return the optimum of `knapsack`."""
    return by("highs", knapsack(), gap=0.0).objective


@settings(max_examples=12)
@given(st.integers(0, 200))
def test_all_solvers_agree_about_a_round(seed):
    """On a tiny round each finds the same worth, and none claims a bound below it."""
    round_ = tiny_round(seed)
    table = build(round_)
    case = make_case(round_, table, values(round_, table))
    found = {}
    problem, _ = normalise(separable(case, both_limits=True))
    form = form_of(problem)
    for name in HERE:
        outcome = SOLVERS[name].solve_form(form, Effort(gap=0.0))
        assert outcome.stop is not StopReason.ERROR, outcome.message
        found[name] = outcome.objective
        if outcome.objective is not None:
            assert outcome.bound >= outcome.objective - 1e-9
            worth = problem.objective(*problem.answer(outcome.x))
            assert worth == pytest.approx(outcome.objective, rel=1e-9)
    expected = found["highs"]
    for objective in found.values():
        assert objective == (expected if expected is None else pytest.approx(expected, rel=1e-6))


@pytest.mark.parametrize("name", HERE)
def test_a_gap_and_no_solution_are_told_apart(name):
    """With a wide gap the search stops early, and says so; a broken model has no solution."""
    outcome = by(name, knapsack(), gap=0.05)
    assert (outcome.stop, outcome.status) == (StopReason.GAP, SolutionStatus.OPTIMAL)
    assert outcome.objective < outcome.bound <= 1.06 * outcome.objective
    model = knapsack()
    model.more = pyo.Constraint(expr=sum(model.take.values()) >= 31)
    outcome = by(name, model)
    assert (outcome.stop, outcome.status) == (StopReason.INFEASIBLE, SolutionStatus.NONE)
    assert outcome.objective is None
    assert model.take[0].value is None


@pytest.mark.parametrize("name", STARTED)
def test_a_start_counts(name, best):
    """With the optimum to start from it is the answer, however wide the gap."""
    model = knapsack()
    by("highs", model, gap=0.0)
    alone = by(name, knapsack(), gap=0.3)
    assert alone.objective < best
    assert alone.incumbents[-1][1] == pytest.approx(alone.objective, rel=1e-6)
    outcome = by(name, model, gap=0.3)
    assert outcome.objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("name", HERE)
def test_without_time_there_is_no_solution(name):
    """A limit that is over stops each before it begins; values stay as they are."""
    model = knapsack()
    outcome = by(name, model, deadline=Deadline(1.0), reserve_s=2.0)
    assert (outcome.stop, outcome.status) == (StopReason.TIME_LIMIT, SolutionStatus.NONE)
    assert outcome.bound is None
    assert model.take[0].value is None


def test_a_program_that_does_not_stop_is_stopped(monkeypatch, tmp_path):
    """A program in CBC's place that sleeps for an hour has no answer once time is over."""
    program = tmp_path / "cbc"
    program.write_text('#!/bin/sh\n[ "$1" = -stop ] || exec sleep 3600\n')
    program.chmod(0o755)
    given = {"through": "cbc", "program": str(program)}
    outcome = by_pyomo.solve_form(linear_form(knapsack()), Effort(deadline=Deadline(0.2)), **given)
    assert (outcome.stop, outcome.status) == (StopReason.TIME_LIMIT, SolutionStatus.NONE)


def test_minima_with_fractions_and_offsets_are_the_same_for_all():
    """Min 10 + 0.1 x + z with x + 2 z >= 3.3, x in 0..2, z in [0.25, 4] is 10 + 0.2 + 0.65.

    CP-SAT takes z on a grid, so it may be a step of 3.75 / 2^20 off, and its bound twice that.
    """
    for name in HERE:
        model = pyo.ConcreteModel()
        model.x = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, 2))
        model.z = pyo.Var(bounds=(0.25, 4))
        model.least = pyo.Constraint(expr=model.x + 2 * model.z >= 3.3)
        model.cost = pyo.Objective(expr=10 + 0.1 * model.x + model.z)
        outcome = by(name, model, gap=0.0)
        off = 4e-6 if "continuous" in SOLVERS[name].lacks else 0
        assert outcome.objective == pytest.approx(10.85, abs=1e-6 + off)
        assert 10.85 - 2 * off - 1e-6 <= outcome.bound <= outcome.objective + 1e-9


def test_rounding_cuts_off_no_solution():
    """0.1 + 0.2 is not 0.3 in binary: both are taken all the same, and the bound is no lower."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var([1, 2], domain=pyo.Binary)
    model.room = pyo.Constraint(expr=0.1 * model.x[1] + 0.2 * model.x[2] <= 0.3)
    model.worth = pyo.Objective(expr=model.x[1] / 3 + model.x[2] / 7, sense=pyo.maximize)
    outcome = by(CP_SAT, model, gap=0.0)
    assert outcome.objective == 1 / 3 + 1 / 7
    assert outcome.objective <= outcome.bound <= outcome.objective * (1 + 1e-9)


def test_the_grid_cuts_off_no_solution():
    """3 z = 1 has no solution on a grid of halves of halves; a step of 2^-20 beside it counts."""
    model = pyo.ConcreteModel()
    model.x, model.z = pyo.Var(domain=pyo.Binary), pyo.Var(bounds=(0, 1))
    model.third = pyo.Constraint(expr=3 * model.z == 1)
    model.worth = pyo.Objective(expr=model.x + model.z, sense=pyo.maximize)
    outcome = by(CP_SAT, model, gap=0.0)
    assert outcome.objective == pytest.approx(4 / 3, abs=2**-20)
    assert outcome.bound >= 4 / 3


def test_numbers_without_an_end_are_refused():
    """CP-SAT counts in finite ranges."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.NonNegativeIntegers)
    model.cost = pyo.Objective(expr=model.x)
    with pytest.raises(InputError, match="x without bounds"):
        by(CP_SAT, model)


def test_what_pyomo_reaches_is_solved_through_it(monkeypatch, best):
    """Pyomo's own interface, here to HiGHS: a solution and a bound, and nothing made up."""
    named = by_pyomo.Options("mip_rel_gap", "random_seed", "threads")
    monkeypatch.setitem(by_pyomo.OPTIONS, "appsi_highs", named)
    form = linear_form(knapsack())
    # Apart, as other tests have used HiGHS in this thread with another number of helpers.
    outcome = apart(
        lambda: by_pyomo.solve_form(form, Effort(gap=0.0), through="appsi_highs"), helpers=0
    )
    assert outcome.stop is StopReason.COMPLETE
    assert outcome.objective == pytest.approx(best, rel=1e-9)
    assert outcome.bound == pytest.approx(best, rel=1e-6)
    assert (outcome.nodes, outcome.incumbents) == (0, ())
    assert MIP["gurobi"].lacks == ("warm start", "incumbents", "nodes")


def test_a_solver_that_is_not_there_is_refused_in_one_line(monkeypatch):
    """Unknown or missing: the line says which are installed, and how to get it."""
    with pytest.raises(InputError, match=r"'foo', no solver.* installed: highs"):
        policy("milp(solver=foo)")
    there = {"pyscipopt", "ortools"}
    monkeypatch.setattr(
        backends, "find_spec", lambda name: None if name in there else find_spec(name)
    )
    for spec, name in (("milp(solver=scip)", "scip"), ("cp-sat", CP_SAT)):
        with pytest.raises(InputError) as caught:
            policy(spec)
        assert f"{name!r}, which is not installed (pip install" in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"'cp-sat', no solver"):
        find_solver(CP_SAT, "milp: solver")


def test_each_solver_decides_a_round_to_the_gap():
    """Plans are valid, say who solved them, and are as good as each other's to the gap."""
    round_ = generated(20, None, "tight", 3)
    plans = {}
    for spec in ("milp", "milp(solver=scip)", "milp(solver=cbc)", "cp-sat"):
        made = policy(spec, gap=1e-3)
        plans[spec] = plan = made.plan(round_, deadline=Deadline(), seed=0)
        assert check(round_, plan) == []
        assert plan.status is SolutionStatus.OPTIMAL
        assert plan.gap <= 1e-3
    worth = [plan.objective for plan in plans.values()]
    assert min(worth) >= max(worth) * (1 - 1e-3)
    records = {spec: plan.record for spec, plan in plans.items()}
    if records["milp"].variables:  # prices alone did not prove the gap
        assert records["milp(solver=scip)"].solver == "scip"
        assert records["milp(solver=scip)"].versions.keys() > {"pyscipopt"}
        assert plans["milp"].details.solver_lacks == ()
        assert plans["cp-sat"].details.solver_lacks == ("continuous",)


def test_a_solver_is_loaded_when_it_is_needed():
    """`import ronda` and the policies' names load none of them."""
    import subprocess

    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, ronda; ronda.policy('cp-sat'); ronda.policy('milp(solver=scip)');"
            "print(*({'ortools', 'pyscipopt', 'pulp', 'pyomo'} & sys.modules.keys()))",
        ],
        capture_output=True,
        check=True,
        text=True,
    )
    assert said.stdout.split() == []


def test_highs_can_be_loaded_after_cp_sat():
    """In a process in which CP-SAT is asked first, too."""
    import subprocess

    lines = (
        "from ronda.solvers.exact import from_pyomo",
        "import pyomo.environ as pyo",
        "m = pyo.ConcreteModel()",
        "m.x = pyo.Var(domain=pyo.Binary)",
        "m.o = pyo.Objective(expr=m.x)",
        "from_pyomo.solve(m, solver='cp-sat')",
        "import highspy",
        "highspy.Highs()",
    )
    subprocess.run([sys.executable, "-c", "; ".join(lines)], capture_output=True, check=True)
