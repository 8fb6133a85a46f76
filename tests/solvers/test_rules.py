"""Rules of the user's own: against brute force, through files, and refused."""

import os
from functools import cache
from itertools import product

import highspy
import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import shortages
from ronda.formulations.objectives.by_name import values
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.profile import Rated
from ronda.solvers.applied_rules import asked
from ronda.solvers.decision.by_file import allocate_by_file, model_of
from ronda.solvers.decision.plan import Question, to_plan
from ronda.solvers.decision.realise import realise
from ronda.solvers.exact.from_pyomo import linear_form
from ronda.solvers.exact.infeasible import conflicts
from ronda.solvers.exact.model_file import export
from ronda.solvers.prices.dual import Search
from ronda.solvers.registry import config_of
from ronda.solvers.rules import rules

MOST = 4


def tiny(seed):
    """Return a round of up to four jobs on up to 6 GPUs of one node, and random rules for it."""
    rng = np.random.default_rng([seed, 44])
    cluster = ronda.uniform_cluster(
        ronda.GpuType(name="G", memory_gib=16, idle_w=20.0), 1, int(rng.integers(2, 7))
    )
    rates = {n: float(n ** rng.uniform(0.5, 1.0)) for n in range(1, MOST + 1)}
    profile = ronda.Profile(name="p", throughput={"G": _rated(rates)})
    jobs = [
        Job(
            id=f"j{j}",
            submit_s=float(j),
            profile="p",
            user=str(rng.choice(["vision", "speech"])),
            gpus=(few := int(rng.integers(1, 3))),
            min_gpus=few,
            max_gpus=int(rng.integers(few, MOST + 1)),
            estimate=Estimate(work=float(rng.uniform(500, 5000))),
        )
        for j in range(int(rng.integers(1, 5)))
    ]
    waiting = tuple(JobState(job=job, since_s=job.submit_s) for job in jobs)
    round_ = ronda.Round(now_s=100.0, cluster=cluster, profiles={"p": profile}, waiting=waiting)
    return round_, [_rule(seed, n) for n in range(int(rng.integers(1, 4)))]


def _rated(rates):
    """Return rates by number of GPUs, at full clock."""
    n = len(rates)
    return Rated(
        gpus=tuple(rates),
        nodes=(1,) * n,
        batch=(1.0,) * n,
        clock=(1.0,) * n,
        rate=tuple(rates.values()),
        power_w=tuple(100.0 * g for g in rates),
    )


def _rule(seed, number):
    """Return a random rule, whose coefficients are of options alone."""

    def rule(round, table):
        rng = np.random.default_rng([seed, number, 45])
        team = np.array([s.job.user == "vision" for s in table.jobs])[table.job]
        some = rng.random(len(table.jobs))[table.job] < 0.6
        column = [table.gpus * team, table.gpus * some, 1.0 * some, np.where(team, 1.0, -1.0)]
        use = column[rng.integers(4)] * 1.0
        if rng.random() < 0.2:
            return ronda.Term(rng.choice([-0.1, 0.1]) * use)
        sense = str(rng.choice(["<=", "<=", ">=", "=="], p=[0.3, 0.3, 0.3, 0.1]))
        penalty = None if rng.random() < 0.6 else float(rng.choice([0.01, 0.1, 1.0]))
        limit = float(rng.integers(0, 4)) + float(rng.choice([0.0, 0.0, 0.5])) * (sense != "==")
        return ronda.Limit(use, sense, limit, penalty=penalty)

    rule.__name__ = f"r{number}"
    return rule


def best(round_, extra):
    """Return the greatest worth of a choice that keeps all rules; None without one."""
    table = ronda.option_table(round_)
    limits, worth = asked(rules(extra), round_, table)
    worth, top = worth + values(round_, table), None
    ways = [[-1, *range(a, b)] for a, b in zip(table.start, table.start[1:], strict=False)]
    for choice in product(*ways):
        rows = np.array([k for k in choice if k >= 0], dtype=int)
        over = limits.use[:, rows].sum(axis=1) - limits.capacity
        hard = np.isinf(limits.penalty)
        if table.gpus[rows].sum() > round_.cluster.gpus or (over[hard] > 1e-9).any():
            continue
        total = worth[rows].sum() - (limits.penalty[~hard] * np.maximum(over[~hard], 0)).sum()
        top = total if top is None else max(top, total)
    return top


@cache
def decided(seed):
    """Return a tiny round, its rules and the best worth, which all policies are held against."""
    round_, extra = tiny(seed)
    return round_, extra, best(round_, extra)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in (50, 100, 150))]
)
@pytest.mark.parametrize("policy", ["milp(gap=0)", "prices(gap=1e-9)"])
def test_plans_are_the_best_that_keep_random_rules(policy, first):
    """Of 50 tiny rounds, 200 in a soak: those of brute force, or there is no plan."""
    none = 0
    for seed in range(first, first + (50 if os.environ.get("SOAK") else 20)):
        round_, extra, top = decided(seed)
        plan = ronda.solve(round_, policy, extra=extra)
        if top is None:
            none += 1
            assert plan.stop is StopReason.INFEASIBLE, seed
            assert plan.status is SolutionStatus.NONE, seed
            assert "rule[" in plan.record.message, seed
            continue
        assert plan.status is SolutionStatus.OPTIMAL, (seed, plan.record.message)
        assert plan.objective == pytest.approx(top, abs=1e-7), seed
        assert plan.bound >= top - 1e-7, seed
        assert ronda.check(round_, plan) == []
        assert ronda.broken_rules(extra, round_, plan) == []
    assert 2 < none < 25


@pytest.mark.parametrize("policy", ["milp(gap=0)", "prices(gap=1e-8)"])
def test_limits_that_come_in_one_after_the_other_leave_the_same_plan(policy, monkeypatch):
    """As many limits do (`FEW_RULES`): here all, one at a time."""
    monkeypatch.setattr("ronda.solvers.decision.plan.FEW_RULES", 0)
    monkeypatch.setattr("ronda.solvers.decision.plan.MORE_RULES", 1)
    for seed in range(30):
        round_, extra, top = decided(seed)
        plan = ronda.solve(round_, policy, extra=extra)
        assert (plan.stop is StopReason.INFEASIBLE) == (top is None), seed
        if top is not None:
            assert plan.status is SolutionStatus.OPTIMAL, (seed, plan.record.message)
            assert plan.objective == pytest.approx(top, abs=1e-7), seed
            assert plan.bound >= top - 1e-7, seed
            assert ronda.broken_rules(extra, round_, plan) == []


@pytest.mark.parametrize("policy", ["milp", "prices"])
def test_thousands_of_limits_are_kept(policy):
    """Of (i + 1) GPUs ≤ 2 (i + 1) + 0.5, i below 3,000, the last says most: 2 GPUs."""
    round_, _ = tiny(4)

    def many(round, table):
        for i in range(3000):
            yield ronda.Limit(table.gpus * (i + 1.0), "<=", 2.0 * (i + 1) + 0.5)

    def one(round, table):
        return ronda.Limit(table.gpus, "<=", 2)

    plan, same = (ronda.solve(round_, policy, extra=[rule]) for rule in (many, one))
    assert plan.status is SolutionStatus.OPTIMAL
    assert plan.objective == pytest.approx(same.objective)
    assert ronda.broken_rules([many], round_, plan) == []


def test_no_plan_is_said_where_it_is_proven():
    """Two jobs must run: without time for a choice nobody knows whether they can."""
    round_, _ = tiny(4)

    def least(round, table):
        return ronda.Limit(np.ones(len(table)), ">=", 2)

    def impossible(round, table):
        return ronda.Limit(np.ones(len(table)), ">=", 20)

    late = ronda.solve(round_, "milp", extra=[least], deadline=1e-6)
    assert late.stop is not StopReason.INFEASIBLE
    assert "is valid" not in late.record.message
    proven = ronda.solve(round_, "milp", extra=[impossible])
    assert (proven.stop, proven.status) == (StopReason.INFEASIBLE, SolutionStatus.NONE)
    assert "no plan is valid: rule[impossible]" in proven.record.message


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def bad(round, table): return 1 / 0", "ZeroDivisionError"),
        ("def bad(round, table): return 3", "TypeError"),
        ("def bad(round, table): return ['x']", "found str"),
        ("import ronda\ndef bad(r, t): return ronda.Limit([1.0], '<=', 1)", "shape (1,)"),
        ("import ronda\ndef bad(r, t): return ronda.Term(t.gpus / 0.0)", "found inf"),
        ("import ronda\ndef bad(r, t): return ronda.Limit(t.gpus, '<', 1)", "found '<'"),
        ("import ronda\ndef bad(r, t): return ronda.Limit(t.gpus, '<=', float('nan'))", "nan"),
        ("import ronda\ndef bad(r, t): return ronda.Limit(t.gpus, '<=', 1, penalty=-1)", "-1"),
        ("import ronda\ndef bad(r, t): return ronda.Limit(t.gpus, '<=', 1, 'a[b')", "'a[b'"),
        ("import ronda\ndef bad(r, t): return [ronda.Limit(t.gpus, '<=', 1, 'a')] * 2", "'a'"),
        (
            "def bad(round, table):\n    yield from ()\n    raise KeyError('late')",
            "KeyError: 'late'",
        ),
        ("import sys\ndef bad(round, table): sys.exit(0)", "SystemExit: 0 (mine.py:2)"),
        ("def bad(round, table): raise GeneratorExit", "GeneratorExit"),
        ("def bad(r, t): t.rate[:] = 1e9", "read-only (mine.py:1)"),
        ("def bad(r, t): t.must_run[:] = True", "read-only"),
        ("def bad(r, t): t.extra_w[:] = 0", "read-only"),
        ("import ronda\ndef bad(r, t): return ronda.Limit(t.gpus * 1j, '<=', 1)", "(complex128)"),
        ("import ronda\ndef bad(r, t): return ronda.Term(t.gpus.astype(str))", "(<U21)"),
        ("import ronda\ndef bad(r, t): return ronda.Term(t.gpus.astype(object))", "(object)"),
        ("import ronda\ndef bad(r, t): return ronda.Limit(t.gpus, '<=', '1')", "limit: found '1'"),
        ("import ronda\ndef bad(r, t): return ronda.Limit(t.gpus, '<=', 1 + 0j)", "found (1+0j)"),
        ("import ronda\ndef bad(r, t): return ronda.Limit(t.gpus, '<=', 1, penalty='2')", "'2'"),
        ("import ronda\ndef bad(r, t): return ronda.Limit(t.gpus, [], 1)", "found []"),
        ("def bad(round): return []", "(round)"),
        ("def bad(round, table, node): return []", "node); expected a function of the round and"),
        ("def bad(round, table, nodes): return []", "and of rack if it asks where they are"),
        ("def _bad(round, table): return []", "no rule"),
        ("import nowhere_to_be_found", "nowhere_to_be_found"),
    ],
)
def test_a_rule_that_is_none_is_refused_in_one_line(text, found, tmp_path, monkeypatch):
    """It names the file, and the rule where there is one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(InputError) as refused, np.errstate(divide="ignore"):
        ronda.solve(ronda.load("clock-or-gpus"), extra="mine.py")
    told = str(refused.value)
    assert "mine.py" in told
    assert found in told
    assert "\n" not in told


def test_policies_that_keep_no_rules_refuse_them():
    """In one line that names two that do, however they are given."""

    def rule(round, table):
        return ronda.Limit(table.gpus, "<=", 1)

    for policy in ("fifo", "genetic", "cp-sat", "milp-energy", "prices+fused"):
        with pytest.raises(InputError, match="milp or prices"):
            ronda.solve(tiny(0)[0], policy, extra=[rule])
    with pytest.raises(InputError, match="milp or prices"):
        ronda.policy("prices+fused", extra=[rule])


def test_what_a_file_of_rules_is_goes_into_records(tmp_path, monkeypatch):
    """A policy is made again from its configuration, and refuses a file that has changed."""
    monkeypatch.chdir(tmp_path)
    text = "import ronda\ndef cap(round, table): return ronda.Limit(table.gpus, '<=', 1)\n"
    (tmp_path / "mine.py").write_text(text)
    made = ronda.policy("milp(extra=mine.py)")
    config = config_of(made)
    assert ronda.policy("milp", **config) == made
    (tmp_path / "mine.py").write_text(text + "\n")
    with pytest.raises(InputError, match="has changed"):
        ronda.policy("milp", **config)


def test_what_runs_against_a_rule_is_stopped_where_a_policy_fails():
    """Two jobs of three keep a limit of two GPUs; so does the plan where time is over."""
    round_, _ = tiny(4)
    profile = round_.profiles["p"]
    cluster = ronda.uniform_cluster(ronda.GpuType(name="G", memory_gib=16, idle_w=20.0), 1, 4)
    option = Option(pool=0, gpus=1, span="node", rate=1.0, power_w=100.0)
    running = tuple(
        JobState(
            job=Job(id=f"j{j}", submit_s=0.0, profile="p", estimate=Estimate(work=1000.0)),
            since_s=0.0,
            allocation=Allocation(option=option, placement=((0, 1),)),
        )
        for j in range(3)
    )
    round_ = ronda.Round(now_s=100.0, cluster=cluster, profiles={"p": profile}, running=running)

    def two(round, table):
        return ronda.Limit(table.gpus, "<=", 2)

    assert len(ronda.solve(round_, "milp").allocations) == 3
    for policy in ("milp", "prices"):
        for deadline in (None, 1e-6):
            plan = ronda.solve(round_, policy, extra=[two], deadline=deadline)
            assert len(plan.allocations) == 2
            assert ronda.broken_rules([two], round_, plan) == []
    kept = ronda.Plan(allocations=round_.held)
    assert [str(v) for v in ronda.broken_rules([two], round_, kept)] == [
        "rule: rule[two]: 3, at most 2"
    ]


def test_an_infeasible_rule_is_named():
    """By the conflicts of the model: the data say it, or the constraints together."""

    def much(round, table):
        return ronda.Limit(table.gpus, ">=", 1000)

    def both(round, table):
        yield ronda.Limit(table.gpus, ">=", 2, "many")
        yield ronda.Limit(table.gpus, "<=", 1, "few")

    round_, _ = tiny(0)
    for rule, names in ((much, {"rule[much]"}), (both, {"rule[many]", "rule[few]"})):
        question = Question.of(round_, "rank", extra=rules([rule]))
        model = model_of(question, exact=False)
        found = shortages(model.case) or conflicts(linear_form(model), ronda.Deadline())
        assert names <= {name for conflict in found for name in conflict.constraints}


@pytest.mark.parametrize("program", ["highs", "scip"])
def test_other_solvers_keep_the_rules_of_an_exported_model(program, tmp_path):
    """Their solutions of rounds with rules make plans worth as much as brute force finds."""
    made = 0
    for seed in range(12):
        round_, extra = tiny(seed)
        if not (top := best(round_, extra)):  # SCIP writes nothing of a plan of nothing
            continue
        question = Question.of(round_, "rank", extra=rules(extra))
        path, solution = tmp_path / f"{seed}.lp", tmp_path / f"{seed}.sol"
        export(model_of(question, exact=False), path)
        _solve(program, path, solution)
        choice = allocate_by_file(question, solution, Search())
        plan = to_plan(question, choice, ronda.Deadline())
        assert plan.objective == pytest.approx(top, abs=1e-6), seed
        assert plan.bound >= top - 1e-6
        assert ronda.broken_rules(extra, round_, plan) == []
        made += 1
    assert made > 5


def _solve(program, path, solution):
    """Write the solution of a model that another program finds."""
    if program == "highs":
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.readModel(str(path))
        highs.run()
        highs.writeSolution(str(solution), 0)
        return
    scip = pytest.importorskip("pyscipopt").Model()
    scip.hideOutput()
    scip.readProblem(str(path))
    scip.optimize()
    scip.writeBestSol(str(solution))


@pytest.mark.parametrize("policy", ["milp", "prices"])
def test_what_a_limit_asks_for_runs_though_it_is_worth_less_than_nothing(policy):
    """Every job loses by a term; the one that loses least runs for the rule, and no other."""
    round_, _ = tiny(4)

    def one_at_a_loss(round, table):
        yield ronda.Term(-10.0 * table.gpus)
        yield ronda.Limit(np.ones(len(table)), ">=", 1)

    plan = ronda.solve(round_, policy, extra=[one_at_a_loss])
    assert len(plan.allocations) == 1
    assert plan.objective == pytest.approx(best(round_, [one_at_a_loss]))
    assert plan.objective < 0


def test_an_option_stays_that_only_a_rule_makes_better():
    """At less clock a job is slower on as many GPUs: a rule against full clocks needs that."""
    round_ = replace(ronda.load("clock-or-gpus"), power_cap_w=None)

    def slowly(round, table):
        return ronda.Limit(1.0 * (table.clock == 1.0), "<=", 0)

    question = Question.of(round_, "rank", extra=rules([slowly]))
    case = make_case(round_, question.table, question.values)
    assert question.table.clock[case.rows].tolist() == [0.7, 1.0, 0.7, 1.0]
    for policy in ("milp", "prices"):
        option = ronda.solve(round_, policy, extra=[slowly]).allocations["A"].option
        assert (option.gpus, option.clock) == (2, 0.7)


@pytest.mark.parametrize(("penalty", "starts"), [(0.1, True), (100.0, False)])
def test_what_starts_next_to_a_choice_pays_for_soft_limits(penalty, starts):
    """Where a GPU costs more than the job earns with it, it waits though there is room."""

    def dear(round, table):
        return ronda.Limit(table.gpus, "<=", 0, penalty=penalty)

    round_ = ronda.load("clock-or-gpus")
    asked_ = Question.of(round_, "rank", extra=rules([dear]))
    nobody = np.array([-1])
    found = realise(round_, asked_.table, asked_.values, nobody, watt_value=0.0)
    assert bool(found.allocations) == starts
    assert found.objective == (pytest.approx(0.7 - 2 * 0.1) if starts else 0.0)


def test_a_policy_that_nobody_guards_returns_no_plan_that_breaks_a_rule():
    """Cut at its deadline it would keep what runs: it has no plan then."""
    round_, _ = tiny(4)
    option = Option(pool=0, gpus=1, span="node", rate=1.0, power_w=100.0)
    held = Allocation(option=option, placement=((0, 1),))
    state = JobState(job=Job(id="j", submit_s=0.0, profile="p"), since_s=0.0, allocation=held)
    round_ = ronda.Round(
        now_s=100.0, cluster=round_.cluster, profiles=round_.profiles, running=(state,)
    )

    def none(round, table):
        return ronda.Limit(table.gpus, "<=", 0)

    made = ronda.policy("milp", extra=[none])
    plan = made.plan(round_, deadline=ronda.Deadline(1e-9), seed=0)
    assert (plan.status, plan.allocations) == (SolutionStatus.NONE, {})
    assert "rule[none]" in plan.record.message


def test_a_limit_beyond_all_options_is_told_in_words():
    """What all options have at most, and what the rule asks for."""

    def much(round, table):
        return ronda.Limit(table.gpus, ">=", 1000)

    question = Question.of(tiny(0)[0], "rank", extra=rules([much]))
    (found,) = shortages(model_of(question, exact=False).case)
    assert found.constraints == ("rule[much]",)
    assert "rule[much] asks for at least 1000" in found.message
