"""Rounds of several partitions: decided as if each were alone, unless a limit is shared."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from partitioned import alone
from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.pyomo_model import build
from ronda.formulations.allocation.rows import separable
from ronda.formulations.allocation.separable import independent
from ronda.instances import generate
from ronda.instances.clock import Deadline
from ronda.instances.plan import SolutionStatus, SolveRecord
from ronda.solvers.decision.by_milp import allocate
from ronda.solvers.decision.plan import Question, later
from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.exact.linear_form import Effort
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import first_answer, in_turn, solve_separable
from ronda.solvers.registry import policy


def round_of(partitions, seed, jobs=24):
    """Return a round of partitions of two nodes, without limits on power.

    All jobs are of about one age: how fast they grow old depends on the jobs of all partitions.
    """
    structure = generate.Structure(partitions=partitions)
    made = generate.round(jobs, 16 * partitions, "balanced", seed, structure)

    def young(states):
        return tuple(replace(s, job=replace(s.job, submit_s=0.01 * s.job.submit_s)) for s in states)

    return replace(
        made,
        waiting=young(made.waiting),
        running=young(made.running),
        power_cap_w=None,
        energy_j=None,
    )


def decided(name, round_):
    """Return the plan of a policy without a time limit."""
    return policy(name).plan(round_, deadline=Deadline(), seed=0)


def options(*plans):
    """Return how the jobs of some plans run, wherever that is."""
    return {job: replace(a.option, pool=0) for plan in plans for job, a in plan.allocations.items()}


@settings(max_examples=5, deadline=None)
@given(st.integers(2, 8), st.integers(0, 100))
def test_partitions_are_decided_as_if_alone(partitions, seed):
    """Same options for every job; objective and bound are the sums."""
    round_ = round_of(partitions, seed)
    whole = decided("prices", round_)
    parts = [decided("prices", alone(round_, p.name)) for p in round_.cluster.partitions]
    assert options(whole) == options(*parts)
    assert whole.objective == pytest.approx(sum(p.objective for p in parts), rel=1e-12)
    assert whole.bound == pytest.approx(sum(p.bound for p in parts), rel=1e-12)
    assert whole.gap <= 1e-4


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_milp_of_parts_is_the_optimum_of_the_whole(seed):
    """One model of all partitions in HiGHS is worth no more."""
    round_ = round_of(3, seed)
    plan = decided("milp(gap=0)", round_)
    question = Question.of(round_, "rank")
    given_ = round_, question.table, question.values
    assert plan.bound == pytest.approx(solve(build(*given_), Effort(gap=0)).objective, rel=1e-7)
    assert plan.objective == pytest.approx(plan.bound, rel=1e-7)
    assert plan.record.incumbents[-1][1] == pytest.approx(plan.objective, rel=1e-7)
    assert plan.record.solver == "highs"
    assert plan.status is SolutionStatus.OPTIMAL


def test_parts_are_answered_one_after_the_other():
    """Each partition is a part: the first has a share of the time, the last all that is left."""
    round_ = round_of(3, 0)
    question = Question.of(round_, "rank")
    problem = separable(make_case(round_, question.table, question.values))
    answer, parts = solve_separable(problem), independent(problem)
    assert (answer.parts, len(parts)) == (3, 3)
    alone_ = [solve_separable(part.problem).objective for part in parts]
    assert answer.objective == pytest.approx(sum(alone_))
    limits = [own.deadline.limit_s for _, own in in_turn(parts, Search(deadline=Deadline(9e3)))]
    sizes = np.array([len(part.options) + 1.0 for part in parts])
    assert limits[0] == pytest.approx(9e3 * sizes[0] / sizes.sum(), rel=1e-3)
    assert limits[-1] == pytest.approx(9e3, rel=1e-9)


def test_costs_of_searches_add_up():
    """Times and nodes do, the largest model counts, and the last words stand."""
    first = SolveRecord(build_s=1, solve_s=2, nodes=3, variables=9, solver="prices", message="one")
    more = SolveRecord(build_s=4, solve_s=8, nodes=16, variables=5, solver="highs", message="two")
    both = later(first, more)
    assert (both.build_s, both.solve_s, both.nodes, both.variables) == (5, 10, 19, 9)
    assert (both.solver, both.message) == ("highs", "two")


def test_parts_without_time_for_a_milp_keep_the_fill(monkeypatch):
    """Each part starts from its own jobs of the choice of the whole: where no MILP can be made
    (packages that take 0.5 s would be loaded within 0.4 s), they are that choice again.
    """
    round_ = round_of(3, 0)
    question = Question.of(round_, "rank")
    asked = round_, question.table, question.values
    search = Search(gap=0.0, deadline=Deadline(0.4), solver="scip")
    problem = separable(make_case(*asked))
    fill = first_answer(problem, search)
    monkeypatch.delitem(sys.modules, "pyomo.environ", raising=False)
    choice = allocate(*asked, search)
    assert choice.objective == pytest.approx(fill.objective)
    assert np.count_nonzero(choice.chosen >= 0) == np.count_nonzero(fill.chosen >= 0)
    assert choice.bound == pytest.approx(max(fill.bound, fill.objective))
    assert "no time for a MILP" in choice.record.message


@pytest.mark.parametrize("name", ["prices", "milp"])
def test_shared_cap_that_can_bind_keeps_a_round_whole(name):
    """Two partitions that may draw what they want are apart; half of that they must share."""
    round_ = round_of(2, 0)
    free = decided(name, round_)
    drawn_w = sum(a.option.power_w for a in free.allocations.values())
    capped = replace(round_, power_cap_w=round_.cluster.topology.idle_w + 0.5 * drawn_w)
    plan = decided(name, capped)
    assert plan.objective < free.objective
    assert plan.gap <= 1e-4
    assert plan.prices["power_cap"] > 0
    assert "parts" not in plan.record.message
