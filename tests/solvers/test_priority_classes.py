"""Priority classes: weights, and strict stages on the size asked for."""

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

import every_site_plan
import ronda
from ronda.formulations.options.table import rows_of
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan, Stage
from ronda.instances.site import PriorityClass, Site
from ronda.questions.explain import explain_jobs
from ronda.solvers.decision.plan import Question
from ronda.solvers.plan_report import plan_report
from ronda.solvers.registry import policy
from site_cases import rigid, round_of
from site_rounds import OBJECTIVE, classes, disruption, tiny

ENGINES = [
    "prices(objective=weighted-goodput,power=1.0)",
    "milp(objective=weighted-goodput,power=1.0)",
    "milp(objective=weighted-goodput,power=1.0,placement=exact)",
]


def site(*, strict=False, worth=1.0):
    """Return two classes of which the higher is strict, or worth more."""
    high = PriorityClass(name="high", rank=1, worth=worth, strict=strict)
    return Site(classes=(high, PriorityClass(name="low", rank=0)))


def high_and_low(**fields):
    """Return a round of 8 GPUs for a job of 5 of the higher class, and two of 4."""
    jobs = [rigid("H", 5, 5.0, priority="high")]
    jobs += [rigid(name, 4, 4.0, priority="low") for name in ("L1", "L2")]
    return round_of(*jobs, site=site(**fields))


@pytest.mark.parametrize("name", ENGINES)
def test_strict_service_leaves_gpus_idle_where_weights_would_not(name):
    """Of 8 GPUs a strict job of 5 leaves 3 idle; worth 1 it waits; worth 2 it runs."""
    strict = ronda.solve(high_and_low(strict=True), name)
    assert {*strict.allocations} == {"H"}
    ((stage),) = strict.details.stages
    assert stage.name == "class[high]"
    assert stage.reached == pytest.approx(stage.bound)
    assert stage.reached == pytest.approx(strict.objective, rel=1e-4)
    assert strict.status == "optimal"
    equal, double = (ronda.solve(high_and_low(worth=worth), name) for worth in (1.0, 2.0))
    assert {*equal.allocations} == {"L1", "L2"}
    assert {*double.allocations} == {"H"}
    assert equal.details.stages == double.details.stages == ()


@pytest.mark.parametrize("name", ENGINES)
def test_a_strict_job_may_not_take_the_cluster_beyond_the_size_it_asks_for(name):
    """J1 asks for 2 GPUs, worth 1, 1.8, 3.2, 5 on 1, 2, 4, 8; J2 of 4 is worth 4: 4 and 4."""
    cluster = ronda.uniform_cluster(ronda.GpuType(name="A", memory_gib=40), 1, 8)
    rates = {"gpus": [1, 2, 4, 8], "rate": [1.0, 1.8, 3.2, 5.0]}
    made = ronda.make_round(
        cluster,
        [
            {"id": "J1", "gpus": 2, "min_gpus": 1, "max_gpus": 8, "rates": rates, "work": 9000.0},
            {"id": "J2", "gpus": 4, "weight": 4.0, "work": 9000.0},
        ],
    )
    priority = {"J1": "high", "J2": "low"}
    waiting = (replace(s, job=replace(s.job, priority=priority[s.job.id])) for s in made.waiting)
    made = replace(made, site=site(strict=True), waiting=tuple(waiting))
    plan = ronda.solve(made, name)
    assert {job: given.option.gpus for job, given in plan.allocations.items()} == {"J1": 4, "J2": 4}
    (stage,) = plan.details.stages
    assert plan.objective == pytest.approx(stage.reached * 7.2 / 1.8, rel=1e-4)


def test_stages_are_kept_in_files_of_plans():
    """They go through JSON."""
    plan = ronda.solve(high_and_low(strict=True), ENGINES[0])
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan).details == plan.details
    assert isinstance(plan.details.stages[0], Stage)


def test_classes_are_served_by_falling_rank_and_ranks_are_shared():
    """The first rank takes 5 of 8 GPUs, so the second gets none, though it is worth more."""
    ranks = {"a": 3, "b": 3, "c": 2, "d": 1}
    found = tuple(PriorityClass(name=n, rank=r, strict=n != "d") for n, r in ranks.items())
    jobs = [rigid(n, 5, w, priority=n) for n, w in (("a", 1.0), ("b", 2.0), ("c", 90.0))]
    made = round_of(*jobs, rigid("d", 3, 1.0, priority="d"), site=Site(classes=found))
    plan = ronda.solve(made, ENGINES[1])
    assert {*plan.allocations} == {"b", "d"}
    assert [stage.name for stage in plan.details.stages] == ["class[a+b]", "class[c]"]
    assert plan.details.stages[1].reached == plan.details.stages[1].bound == 0.0


def test_the_row_of_a_class_has_a_price():
    """A unit of what the strict class has costs the others 0.6: (8 - 5) / 5."""
    plan = ronda.solve(high_and_low(strict=True), "prices(objective=weighted-goodput,power=1.0)")
    assert plan.prices["class[high]"] == pytest.approx(0.6, abs=1e-6)


def strict_round(seed):
    """Return a tiny round of three classes of which two are strict, with a disruption budget."""
    rng = np.random.default_rng([seed, 56])
    made = classes(rng, tiny(seed))
    made = disruption(rng, made) if seed % 2 else made
    found = tuple(replace(c, strict=c.rank > 0) for c in made.site.classes)
    return replace(made, site=replace(made.site, classes=found))


@pytest.mark.parametrize("part", range(4))
def test_no_plan_serves_the_strict_classes_better(part):
    """Exact: the best of all plans by the first class, then the second, and then the objective."""
    for seed in range(part, 24, 4):
        compare(strict_round(seed))


def compare(round_):
    """Hold the stages of three engines against every plan."""
    question = Question.of(round_, OBJECTIVE["objective"], parameters={"power": OBJECTIVE["power"]})
    large, values = 1e4, every_site_plan.plain_values(question)
    scale = max(1.0, float(np.abs(values).max()))
    for power, aim in enumerate(reversed(question.aims), start=1):
        values = values + large**power * aim.worth
    best = every_site_plan.best_plan(question, values)
    for name in ("milp(placement=exact)", "milp", "prices"):
        inside = ",".join(f"{key}={value}" for key, value in OBJECTIVE.items())
        spec = f"{name[:-1]},{inside})" if name.endswith(")") else f"{name}({inside})"
        plan = policy(spec).plan(round_, deadline=Deadline(), seed=0)
        assert ronda.check(round_, plan) == []
        ideal = best.plan_after_moves if "exact" in name else best.plan
        for aim, stage in zip(question.aims, plan.details.stages, strict=True):
            reached, most = (
                float(aim.worth[rows[rows >= 0]].sum())
                for rows in (rows_of(question.table, p) for p in (plan, ideal))
            )
            assert reached == pytest.approx(stage.reached, abs=1e-4 * scale)
            assert stage.bound >= most - 1e-3 * scale
            assert reached >= most - 1e-3 * scale


def test_the_report_and_explanations_read_the_stages():
    """What the class reached costs the others 3 of 5 units of worth; L1 waits for it."""
    round_ = high_and_low(strict=True)
    plan = ronda.solve(round_, ENGINES[0])
    report = plan_report("r.json", round_, plan, policy(ENGINES[0]), seed=0, elapsed_s=0.0)
    (facts,) = (part for part in report.parts if "policy" in str(part.rows))
    assert ("class[high]", "5 of at most 5, which costs the others 3") in [*map(tuple, facts.rows)]
    explained = {
        each.job: each
        for each in explain_jobs(round_, plan, ["H", "L1"], parameters={"power": 1.0})
    }
    assert explained["H"].runs
    assert explained["H"].chosen.rule_cost == pytest.approx(-3.0, abs=1e-6)
    assert not explained["L1"].runs
