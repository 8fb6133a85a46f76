"""Quality against time: gaps and integrals by hand, values of foreign plans, whole runs."""

import msgspec
import numpy as np
import pytest

from ronda.bench.anytime import traces as anytime
from ronda.bench.anytime.figure import quality_over_time
from ronda.bench.anytime.table import as_table, lines
from ronda.bench.anytime.traces import Point, Trace, plan_value, primal_gap, references, trace_of
from ronda.bench.figures.draw import save_chart
from ronda.bench.runs.compare import Comparison, Layout
from ronda.bench.runs.results import Result, Status
from ronda.bench.runs.worker import RunLimits
from ronda.horizon.solve import solve
from ronda.instances import generate
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.files.json import write
from ronda.instances.plan import Plan
from ronda.instances.round import Round

LIMITS = RunLimits(timeout_s=60.0, memory_mib=2048.0)

# At 1 s a plan worth 6 after 10 evaluations, at 3 s one worth 9 after 30; the reference is 10.
STEPS = Trace("r", "p", 0, (Point(1.0, 10, 6.0), Point(3.0, 30, 9.0)), None)


@pytest.fixture(scope="module")
def small() -> Round:
    """Return a round of 12 jobs, some of which run."""
    return generate.round(12, None, "balanced", 0)


def told(**changes):
    """Return a result with the metrics of a run that found 5 at 1 s and 8 at 2 s."""
    metrics = {
        "incumbents": [[1.0, 5.0], [2.0, 8.0]],
        "build_s": 0.5,
        "solve_s": 2.0,
        "evaluations": 40,
        "bound": 10.0,
        "violations": 0,
    }
    return Result(
        key="k",
        instance="r",
        policy="p",
        label="p",
        seed=0,
        status=Status.OK,
        wall_s=3.0,
        metrics=metrics | changes,
    )


def test_the_primal_gap_is_berthold_s():
    """The primal gap is berthold s."""
    assert primal_gap(10.0, 8.0) == pytest.approx(0.2)
    assert primal_gap(0.0, 0.0) == 0.0
    assert primal_gap(-10.0, -20.0) == 0.5
    assert primal_gap(10.0, -1.0) == 1.0
    assert primal_gap(10.0, 0.0) == 1.0


def test_the_primal_integral_by_hand():
    """The primal integral by hand."""
    # 1 s at gap 1, 2 s at 0.4, and up to 10 s at 0.1: 1 + 0.8 + 0.7.
    assert STEPS.integral_s(10.0, 10.0) == pytest.approx(2.5)
    # Up to 2 s: 1 + 0.4.
    assert STEPS.integral_s(10.0, 2.0) == pytest.approx(1.4)
    # Up to 0.5 s there is nothing.
    assert STEPS.integral_s(10.0, 0.5) == pytest.approx(0.5)


def test_gaps_are_steps_in_time_and_in_evaluations():
    """Gaps are steps in time and in evaluations."""
    assert STEPS.at(np.array([0.5, 1.0, 2.9, 3.0]), 10.0).tolist() == pytest.approx(
        [1.0, 0.4, 0.4, 0.1]
    )
    assert STEPS.at(np.array([9, 10, 30]), 10.0, evaluations=True).tolist() == pytest.approx(
        [1.0, 0.4, 0.1]
    )
    assert STEPS.arrives(10.0, 0.1) == STEPS.points[1]
    assert STEPS.arrives(10.0, 0.05) is None


def test_the_reference_is_the_least_bound_or_the_best_value():
    """The reference is the least bound or the best value."""
    bounded = Trace("r", "q", 0, (Point(1.0, 1, 8.0),), 12.0)
    tighter = Trace("r", "s", 0, (Point(1.0, 1, 8.0),), 11.0)
    other = Trace("other", "q", 0, (Point(1.0, 1, 3.0),), None)
    assert references([STEPS, bounded, tighter, other]) == {"r": 11.0, "other": 3.0}
    # A plan outside the bound's options may be worth more than the bound.
    above = Trace("r", "t", 0, (Point(1.0, 1, 11.5),), None)
    assert references([above, tighter]) == {"r": 11.5}


def test_incumbents_become_points_and_evaluations_go_with_time():
    """Incumbents become points and evaluations go with time."""
    # Searching from 0.5 s to 2.5 s makes 40 evaluations: at 1 s a quarter, at 2 s three quarters.
    made = trace_of(told(), 8.0, own=True)
    assert made.points == (Point(1.0, 10.0, 5.0), Point(2.0, 30.0, 8.0))
    assert made.bound == 10.0


def test_what_is_not_placed_does_not_count_earlier_either():
    """What is not placed does not count earlier either."""
    # The plan that was returned is worth 7 of the 8: no incumbent counts for more.
    assert trace_of(told(), 7.0, own=True).points[-1] == Point(2.0, 30.0, 7.0)
    # A better plan than all incumbents (repaired at the end) arrives with the answer.
    assert trace_of(told(), 9.0, own=True).points[-1] == Point(3.0, 40.0, 9.0)


def test_of_another_objective_only_the_answer_counts():
    """Of another objective only the answer counts."""
    made = trace_of(told(), 4.0, own=False)
    assert made.points == (Point(3.0, 40.0, 4.0),)
    assert made.bound is None


def test_the_value_of_a_plan_is_its_policy_s_objective(small):
    """The value of a plan is its policy s objective."""
    plan = solve(small, "milp", deadline=Deadline(20.0))
    assert plan_value(small, plan, "rank") == pytest.approx(plan.objective)
    assert plan_value(small, Plan(), "rank") == 0.0


def test_options_off_the_ladder_have_a_value(small):
    """Options off the ladder have a value."""
    plan = solve(small, "milp", deadline=Deadline(20.0))
    job, held = next((j, a) for j, a in plan.allocations.items() if a.option.gpus >= 2)
    slower = msgspec.structs.replace(held.option, rate=0.75 * held.option.rate, batch=12345.0)
    changed = msgspec.structs.replace(
        plan, allocations=plan.allocations | {job: msgspec.structs.replace(held, option=slower)}
    )
    alone = Plan(allocations={job: held})
    less = Plan(allocations={job: changed.allocations[job]})
    # `rank` is linear in the rate, and a job that waits loses nothing by a switch.
    state = next(s for s in small.jobs if s.job.id == job)
    if state.allocation is None:
        expected = 0.75 * plan_value(small, alone, "rank")
        assert plan_value(small, less, "rank") == pytest.approx(expected)
    rest = plan_value(small, plan, "rank") - plan_value(small, alone, "rank")
    whole = plan_value(small, changed, "rank")
    assert whole == pytest.approx(rest + plan_value(small, less, "rank"))


def test_cases_get_the_common_objective_unless_they_have_another(small):
    """Cases get the common objective unless they have another."""
    made = anytime.cases(
        {"a.json": small},
        ("fifo", "milp", "milp(objective=makespan)", "genetic"),
        (0, 1),
        objective="density",
        time_limit_s=1.0,
    )
    found = [(c.label, c.seed, c.config.get("objective")) for c in made]
    assert ("fifo", 0, None) in found
    assert ("milp", 0, "density") in found
    assert ("milp(objective=makespan)", 0, "makespan") in found
    assert [f for f in found if f[0] == "genetic"] == [
        ("genetic", 0, "density"),
        ("genetic", 1, "density"),
    ]
    assert not [f for f in found if f[:2] == ("fifo", 1)]


def test_two_rounds_of_one_name_are_refused(small):
    """Two rounds of one name are refused."""
    other = msgspec.structs.replace(small, now_s=small.now_s + 1)
    with pytest.raises(InputError, match="another round with the name"):
        anytime.cases({"a": small, "b": other}, ("fifo",), (0,), objective="rank", time_limit_s=1.0)


def test_runs_make_traces_a_table_and_a_figure(small, tmp_path, runs_here):
    """Runs make traces a table and a figure."""
    source = tmp_path / "small.json"
    write(small, source)
    todo = anytime.cases(
        {str(source): small},
        ("fifo", "milp"),
        (0,),
        objective="rank",
        time_limit_s=20.0,
    )
    comparison = Comparison(tmp_path, LIMITS, 1, answer="plan")
    results = comparison.run(todo)
    assert [r.status for r in results] == [Status.OK] * 2, [r.message for r in results]
    layout = Layout(tmp_path, "plan")
    found = anytime.traces_of(results, {small.name: small}, layout, "rank")
    reference = references(found)
    fifo, milp = found
    assert milp.bound is not None
    assert fifo.bound is None
    assert milp.gaps(reference[small.name])[-1] <= 1e-3
    assert len(fifo.points) == 1
    made = lines(found, results, 20.0)
    assert [line["label"] for line in made] == ["fifo", "milp"]
    assert as_table(made, 20.0).markdown().count("| fifo |") == 1
    save_chart(quality_over_time(found, reference, 20.0), tmp_path / "figures" / "small")
    assert (tmp_path / "figures" / "small.png").stat().st_size > 5000
    rows = (tmp_path / "figures" / "small.csv").read_text().splitlines()
    assert len(rows) == 1 + sum(len(t.points) for t in found)
    assert Comparison(tmp_path, LIMITS, 1, answer="plan").missing(todo) == []


def test_a_round_that_changed_meanwhile_is_an_error(small, tmp_path):
    """A round that changed meanwhile is an error."""
    source = tmp_path / "small.json"
    write(small, source)
    todo = anytime.cases({str(source): small}, ("fifo",), (0,), objective="rank", time_limit_s=20.0)
    write(generate.round(5, None, "balanced", 1), source)
    results = Comparison(tmp_path, LIMITS, 1, answer="plan").run(todo)
    assert results[0].status is Status.ERROR
    assert "changed" in results[0].message


FAILED = Trace("r", "p", 1, (), None)


def test_failures_count_as_runs_that_never_had_a_plan(small, tmp_path):
    """Plans that break rules, and runs that did not end: a gap of 1 all along, no reference."""
    broken = told(violations=2)
    failed = msgspec.structs.replace(told(), status=Status.TIME, seed=1, metrics={})
    found = anytime.traces_of([broken, failed], {small.name: small}, Layout(tmp_path), "rank")
    assert [(t.seed, t.points) for t in found] == [(0, ()), (1, ())]
    assert references(found) == {}
    assert FAILED.integral_s(10.0, 7.0) == 7.0
    assert FAILED.at(np.array([1.0, 5.0]), 10.0).tolist() == [1.0, 1.0]
    (line,) = lines(found, [broken, failed], 10.0)
    assert (line["runs"], line["failed"], line["arrived"]) == (2, 2, 0.0)
    assert as_table([line], 10.0).rows[0] == (
        *("p (2 failed)", "2", "–", "100.0", "100.0", "100.0", "never", "–", "3", "10", "–"),
    )


def test_the_ert_counts_what_was_spent_in_vain(tmp_path):
    """Within 1 % after 1 s and 10 evaluations, or never in 3 s and 40: (1 + 3) / 1 and 50 / 1.

    A run that failed after 3 s makes it 7 s, and how much it evaluated is not known.
    """
    good = Trace("r", "p", 0, (Point(1.0, 10, 10.0),), None)
    poor = Trace("r", "p", 1, (Point(1.0, 10, 5.0),), None)
    ended = [msgspec.structs.replace(told(), seed=seed) for seed in (0, 1)]
    (line,) = lines([good, poor], ended, 10.0)
    assert (line["ert_s"], line["ert_evaluations"], line["arrived"]) == (4.0, 50.0, 0.5)
    failed = msgspec.structs.replace(told(), seed=2, status=Status.OOM, metrics={})
    none = Trace("r", "p", 2, (), None)
    (line,) = lines([good, poor, none], [*ended, failed], 10.0)
    assert line["ert_s"] == 7.0
    assert np.isnan(line["ert_evaluations"])
    assert line["integral_s"] == pytest.approx((1.0 + (1.0 + 9 * 0.5) + 10.0) / 3)


def test_the_share_of_targets_by_hand():
    """Gaps of 10 % and 0.01 %: 10 of 40 targets, and all; of a run that has no plan, none."""
    assert anytime.reached(np.array([[0.1, 1e-4]])).tolist() == [0.25, 1.0]
    assert anytime.reached(np.array([[0.1], [1.0]])).tolist() == [0.125]
