"""Options of solvers and their logs: they reach the solver, and what cannot be meant is refused."""

import io

import pytest

import ronda
from ronda.instances import generate
from ronda.instances.clock import Deadline
from ronda.solvers.exact import highs
from ronda.solvers.exact.backends import CP_SAT, LOG
from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.exact.linear_form import Effort
from ronda.solvers.registry import config_of
from tests.helpers import knapsacks

FEW_NODES = {
    "highs": {"mip_max_nodes": 1, "presolve": "off", "mip_heuristic_effort": 0.0},
    "scip": {"limits/nodes": 1, "presolving/maxrounds": 0},
    "cbc": {"maxN": 1},
    CP_SAT: {"max_number_of_conflicts": 1},
}
"""Options that end the search of each early."""


@pytest.mark.parametrize("name", FEW_NODES)
def test_options_reach_the_solver(name):
    """With a limit on its search none proves a knapsack that it proves without."""
    model = knapsacks.knapsack(40, 5)
    effort = Effort(gap=0.0, deadline=Deadline(20.0), options=FEW_NODES[name])
    outcome = solve(model, effort, name)
    assert outcome.bound is None or outcome.bound > outcome.objective * (1 + 1e-9)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            "milp(highs.mip_heuristic_efort=0.2)",
            "no option 'mip_heuristic_efort' of highs.*_effort",
        ),
        ("milp(highs.mip_heuristic_effort=a)", "found 'a'; expected a number, as 0.05"),
        ("milp(highs.mip_heuristic_effort=7)", "found 7; expected a value that highs takes"),
        (
            "milp(highs.mip_rel_gap=0.1)",
            "ronda sets by itself; expected gap=, as in milp.gap=1e-3.",
        ),
        ("milp(highs.output_flag=true)", "ronda sets by itself; expected one that it leaves"),
        ("milp(highs.threads=true)", "found True; expected a whole number"),
        ("milp(scip.limits/nodes=3)", "an option of 'scip'; expected highs.NAME"),
        ("milp(solver=scip, scip.limits/node=3)", "as limits/nodes"),
        ("milp(solver=scip, scip.limits/nodes=2.5)", "found 2.5; expected a whole number"),
        ("milp(solver=scip, scip.limits/nodes=-7)", "found -7; expected a value that scip takes"),
        ("cp-sat(cp-sat.linearisation_level=2)", "as linearization_level"),
        ("cp-sat(cp-sat.linearization_level=true)", "found True; expected a whole number"),
        ("cp-sat(cp-sat.search_branching=FIXED)", "a value that cp-sat takes"),
        ("milp(solver=cbc, cbc.maxNoodes=3)", "cbc.maxNoodes: found 3; expected a value that cbc"),
        ("milp(solver=cbc, cbc.cuts=offf)", "found 'offf'"),
        ("milp(solver=cbc, cbc.maxNodes=2.5)", "found 2.5"),
        ("fifo(highs.threads=1)", "parameter 'highs.threads'"),
    ],
)
def test_what_a_solver_does_not_know_is_refused_in_one_line(spec, said):
    """Names, types, ranges, and options of another solver: the line names the option."""
    with pytest.raises(ronda.InputError, match=said) as caught:
        ronda.policy(spec)
    assert "\n" not in str(caught.value)


def test_options_are_parameters_like_others():
    """By a spec and by keywords they are the same, and stand in what is recorded of a run."""
    given = {"highs.mip_heuristic_effort": 0.2}
    made = ronda.policy("milp(highs.mip_heuristic_effort=0.2)")
    assert made == ronda.policy("milp", **given)
    assert config_of(made).items() >= given.items()
    assert ronda.policy("milp+fused", **given).options == given


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("milp", "HiGHS"),
        ("milp(solver=scip)", "SCIP Status"),
        ("milp(solver=cbc)", "CBC"),
        ("cp-sat", "CP-SAT"),
    ],
)
def test_the_log_of_a_solver_is_passed_on(spec, word, capfd):
    """Its own words come where they were asked for, and nowhere else; without that, nowhere."""
    round_ = generate.round(40, None, "tight", 3)
    log = io.StringIO()
    plan = ronda.solve(round_, spec, log=log)
    if not plan.record.variables:
        pytest.skip("prices alone decide")
    assert word in log.getvalue()
    assert LOG.get() is None
    ronda.solve(round_, spec)
    assert capfd.readouterr() == ("", "")


def test_highs_searches_without_rins():
    """Its version 1.15.1 may end the process there; who wants it says so."""
    assert highs.defaults()["mip_heuristic_run_rins"] is False
    assert highs.silent(mip_heuristic_run_rins=True).getOptionValue("mip_heuristic_run_rins")[1]
