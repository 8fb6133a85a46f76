"""Parts and fractions of GPUs: examples with their answers, and engines against every plan."""

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from every_site_plan import best_plan
from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import within
from ronda.formulations.placement import lack_of_room
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Estimate, JobState, Truth
from ronda.instances.rules.validate import validate
from ronda.solvers.decision.plan import Question
from ronda.solvers.registry import policy
from site_drawn import with_parts
from site_rounds import tiny
from tests.helpers.cut_gpus import PARTS, PROFILE, asking, cut_cluster, cut_round, on
from tests.helpers.cut_rounds import drawn, with_small_parts
from tests.solvers.test_site_rules import compare

ENGINES = ("milp", "prices", "milp(placement=exact)")
VALUED = "objective=weighted-goodput,power=1.0"
ROUNDS, MIXED, SETS = 8, 3, 1


def valued(engine):
    """Return the name of an engine with the objective of these tests."""
    return f"{engine[:-1]},{VALUED})" if engine.endswith(")") else f"{engine}({VALUED})"


def solved(round, engine):
    """Return a valid plan of a round."""
    plan = ronda.solve(round, valued(engine))
    assert check(round, plan) == []
    return plan


@pytest.mark.parametrize("engine", [*ENGINES, "fifo"])
def test_a_3g_and_two_2g_fill_a_gpu_only_with_the_3g_at_4(engine):
    """First fit at 0 loses a 2g."""
    round = cut_round({"a": "3g", "b": "2g", "c": "2g"})
    plan = ronda.solve(round, engine)
    assert check(round, plan) == []
    assert {job: given.parts[0][2] for job, given in plan.allocations.items()}["a"] == 4
    assert len(plan.allocations) == 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("asked", "runs"), [("3g", False), ("4g", False), ("2g", True)])
def test_1g_at_0_1_and_5_block_both_places_of_a_3g(engine, asked, runs):
    """The public case of DRA 933: five memory and four compute slices are free."""
    ran = {f"r{start}": ("1g", (0, 0, start)) for start in (0, 1, 5)}
    round = cut_round({"a": asked}, ran, jobs={job: {"preemptible": False} for job in ran})
    plan = solved(round, engine)
    assert ("a" in plan.allocations) is runs
    if runs:
        assert plan.allocations["a"].parts == ((0, 0, 2),)
    elif engine == "milp":
        assert plan.bound == pytest.approx(plan.objective)  # the rows know


@pytest.mark.parametrize("engine", ENGINES)
def test_three_4g_on_two_gpus(engine):
    """Twelve of 16 memory and of 14 compute slices would do, yet two run, and the bound says so."""
    plan = solved(cut_round(dict.fromkeys("abc", "4g"), cluster=cut_cluster(gpus=2)), engine)
    assert len(plan.allocations) == 2
    assert plan.bound == pytest.approx(plan.objective, rel=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_3g_lose_the_seventh_compute_slice(engine):
    """A 1g waits beside them."""
    jobs = {"a": {"weight": 9.0}, "b": {"weight": 9.0}}
    plan = solved(cut_round({"a": "3g", "b": "3g", "c": "1g"}, jobs=jobs), engine)
    assert set(plan.allocations) == {"a", "b"}
    assert plan.bound == pytest.approx(plan.objective, rel=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_of_three_fractions_above_a_half_two_run_on_two_gpus(engine):
    """Their sum, 1.8, would do."""
    round = cut_round(dict.fromkeys("abc", 0.6), cluster=cut_cluster(gpus=2, shared=True))
    plan = solved(round, engine)
    assert len(plan.allocations) == 2
    assert plan.bound == pytest.approx(plan.objective, rel=1e-4)


def test_one_gpu_has_media_engines_for_one_part():
    """Of two parts with media engines one runs, and a plain 1g beside it."""
    plan = solved(cut_round({"a": "1g+me", "b": "1g+me", "c": "1g"}), "milp")
    assert len(plan.allocations) == 2
    assert plan.bound == pytest.approx(plan.objective, rel=1e-4)


def test_a_fixed_layout_counts_each_part():
    """One 3g and two 2g per GPU, whatever else the slices would hold; whole GPUs have none."""
    cluster = cut_cluster(gpus=2, recut="never", cut=(PARTS["3g"], PARTS["2g"], PARTS["2g"]))
    round = cut_round({"a": "3g", "b": "3g", "c": "3g", "d": "2g"}, cluster=cluster)
    plan = solved(round, "milp")
    assert len(plan.allocations) == 3
    assert "d" in plan.allocations
    assert plan.bound == pytest.approx(plan.objective, rel=1e-4)
    assert solved(cut_round({"w": 1}, cluster=cluster), "milp").allocations == {}


def test_what_runs_keeps_a_gpu_from_being_cut_where_only_empty_ones_are():
    """Half of it is free, and a 3g waits; on a second GPU it runs."""
    ran, jobs = {"r": ("3g", (0, 0, 0))}, {"r": {"preemptible": False}}
    for gpus, runs in ((1, False), (2, True)):
        cluster = cut_cluster(gpus=gpus, recut="empty")
        plan = solved(cut_round({"a": "3g"}, ran, cluster=cluster, jobs=jobs), "milp")
        assert ("a" in plan.allocations) is runs


def test_parts_share_the_idle_power_of_their_gpu():
    """Two 3g add six sevenths of what a busy GPU draws beyond an idle one: 50 + 6/7 300 W."""
    round = cut_round({"a": "3g", "b": "3g"})
    most_w = 50 + 300 * 6 / 7
    assert len(solved(replace(round, power_cap_w=most_w + 0.1), "milp").allocations) == 2
    assert len(solved(replace(round, power_cap_w=most_w - 0.1), "milp").allocations) == 1


@pytest.mark.parametrize("part", range(SETS))
def test_no_plan_is_better_and_no_bound_is_lower(part):
    """Tiny rounds on one to three GPUs, where every plan that the checker accepts is tried."""
    for seed in range(part, ROUNDS, SETS):
        round = drawn(seed)
        question = Question.of(round, "weighted-goodput", parameters={"power": 1.0})
        best = best_plan(question).worth
        for engine in ENGINES:
            plan = policy(valued(engine)).plan(round, deadline=Deadline(), seed=0)
            assert check(round, plan) == []
            nodes = 1e-4 * best if "exact" in engine else 0.0  # what nodes in use cost there
            assert plan.objective <= best + 1e-6
            assert plan.bound >= best - nodes - 1e-6
            assert plan.objective >= best * (1 - 1e-4) - nodes - 1e-6


@pytest.mark.parametrize("part", range(SETS))
def test_with_another_rule_no_plan_is_better_and_no_bound_is_lower(part):
    """Tenants, needs, priorities or nodes that leave, beside parts and fractions."""
    rules = ("tenants", "needs", "classes", "leaving", "licences", "disruption")
    for seed in range(part, MIXED, SETS):
        rule = rules[seed % len(rules)]
        compare(validate(with_small_parts(seed, tiny(seed, (rule,)))))


@pytest.mark.parametrize("severity", [0.0, 1.0])
def test_generated_parts_are_valid_and_run(severity):
    """At the severity 0 nobody asks for a part; at 1 most small jobs do, and some get one."""
    asked, given = 0, 0
    for seed in range(12):
        round = validate(with_parts(tiny(seed), seed=seed, severity=severity))
        parts = {s.job.id for s in round.jobs if s.job.part or s.job.share}
        plan = ronda.solve(round, "fifo")
        assert check(round, plan) == []
        asked, given = asked + len(parts), given + len(parts & set(plan.allocations))
    assert (asked > 0) == (given > 0) == (severity > 0)


@pytest.mark.parametrize(
    ("policy_name", "recut"),
    [("prices", "free"), *(("fifo", recut) for recut in ("free", "empty", "never", "shared"))],
)
def test_runs_over_time(policy_name, recut):
    """All jobs end; energy, work and parts of the schedule are right."""
    instance = horizon(recut)
    first = ronda.run(instance, policy_name)
    assert check(instance, first) == []
    assert all(outcome.state == "completed" for outcome in first.jobs)
    together = sum(len(s.parts) for o in first.jobs for s in o.segments)
    assert together > 5


def horizon(recut):
    """Return an instance of 14 jobs on two nodes of two GPUs."""
    kinds, fields = ["1g", "1g2", "2g", "3g", "4g", "1g+me", 1], {"recut": recut}
    if recut == "never":
        kinds, fields["cut"] = ["3g", "2g"], (PARTS["3g"], PARTS["2g"], PARTS["2g"])
    if recut == "shared":
        kinds, fields = [0.25, 0.3, 0.5, 0.6, 1], {"recut": "never", "shared": True}
    jobs = []
    for k in range(14):
        work = 50.0 + 37.0 * (k * 5 % 14)
        own = {"estimate": Estimate(work=work), "truth": Truth(work=work)}
        job = asking(f"j{k}", kinds[k * 5 % len(kinds)], **own)
        jobs.append(replace(job, submit_s=20.0 * k))
    return Instance(
        name="cut",
        cluster=cut_cluster(2, 2, **fields),
        profiles={"rigid": PROFILE},
        jobs=tuple(jobs),
        costs=Costs(start_s=5.0, restart_s=10.0),
    )


def lacking(round, job):
    """Return why one more job has no room beside what runs."""
    return lack_of_room(round, JobState(job=job, since_s=0.0), on(job).option, round.held)


def test_a_waiting_part_reads_what_is_in_its_way():
    """The operator learns which parts block which slices."""
    ran = {f"r{start}": ("1g", (0, 0, start)) for start in (0, 1, 5)}
    round = cut_round({"a": "3g"}, ran)
    said = lacking(round, round.waiting[0].job)
    assert said == (
        "a 3g.20gb finds no room though 4 compute slices are free on GPU 0 of node 0: "
        "1g.5gb at 1 and 1g.5gb at 5 block its places (0-3, 4-7)"
    )
    few = lacking(round, asking("b", "7g"))
    assert "at most 4 compute slices of a GPU are free" in few
    shared = cut_round({"a": 0.6}, {"b": (0.6, (0, 0))}, cluster=cut_cluster(shared=True))
    left = lacking(shared, shared.waiting[0].job)
    assert left == "at most 0.4 of a GPU is free, on GPU 0 of node 0; it needs 0.6"


def test_a_host_learns_the_part_of_each_job():
    """What runs keeps its slices over decisions, and a later 1g joins no full GPU."""
    host = ronda.Embedded("prices", cut_cluster(gpus=2), profiles={"rigid": PROFILE})
    part = PARTS["3g"]
    more = [{"id": job, "profile": "rigid", "work": 900.0, "part": part} for job in "ab"]
    host.update(added=[*more, {"id": "c", "profile": "rigid", "work": 90.0, "gpus": 1}])
    began = host.decide(deadline_s=5.0).start
    assert {began[job].parts for job in "ab"} == {((0, 0, 0),), ((0, 0, 4),)}
    late = {"id": "e", "profile": "rigid", "work": 900.0, "part": PARTS["1g"]}
    host.update(now_s=60.0, added=[late])
    assert host.decide(deadline_s=5.0).start == {}
    host.update(now_s=120.0, completed=["c"])
    changed = host.decide(deadline_s=5.0)
    assert changed.start["e"].parts[0][:2] == (0, 1)
    assert not changed.stop
    assert not changed.resize
    assert not changed.retune


RAN = {f"r{start}": ("1g", (0, 0, start)) for start in (0, 1, 5)}
FIRM = {job: {"preemptible": False} for job in (*RAN, "r")}
SHARED = cut_cluster(shared=True)
MIXED_NODES = replace(
    SHARED,
    node_groups=(*SHARED.node_groups, replace(SHARED.node_groups[0], name="h", shared=False)),
)
ROWS = {
    "4g: halves": (cut_round(dict.fromkeys("abc", "4g"), cluster=cut_cluster(gpus=2)), "ab", "c"),
    "3g: memory": (cut_round({"a": "3g", "b": "3g", "c": "1g"}), "ab", "c"),
    "1g: compute": (cut_round({"a": "4g"} | dict.fromkeys("bcde", "1g")), "abcd", "e"),
    "1g+me: most": (cut_round({"a": "1g+me", "b": "1g+me"}), "a", "b"),
    "whole: memory": (cut_round({"a": 1, "b": "1g"}), "a", "b"),
    "above a half": (
        cut_round(dict.fromkeys("abc", 0.6), cluster=cut_cluster(gpus=2, shared=True)),
        "ab",
        "c",
    ),
    "sum": (cut_round(dict.fromkeys("abc", 0.5), cluster=cut_cluster(shared=True)), "ab", "c"),
    "shared nodes": (cut_round(dict.fromkeys("abc", 0.5), cluster=MIXED_NODES), "ab", "c"),
    "positions": (cut_round({"a": "2g", "b": "3g"}, RAN, jobs=FIRM), ("a", *RAN), "b"),
    "only empty": (
        cut_round(
            {"a": "3g"}, {"r": ("3g", (0, 0, 0))}, cluster=cut_cluster(recut="empty"), jobs=FIRM
        ),
        "r",
        "a",
    ),
    "layout": (
        cut_round(
            {"a": "3g", "b": "2g", "c": "3g"},
            cluster=cut_cluster(recut="never", cut=(PARTS["3g"], PARTS["2g"], PARTS["2g"])),
        ),
        "ab",
        "c",
    ),
    "uncut": (cut_round({"a": 1}, cluster=cut_cluster(recut="never", cut=(PARTS["3g"],))), "", "a"),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows_allow_what_fits_and_no_more(case):
    """One more job breaks a row, although it would keep all others."""
    round, fits, more = ROWS[case]
    question = Question.of(round, "weighted-goodput", parameters={"power": 1.0})
    table = question.table
    for jobs, allowed in ((fits, True), ((*fits, more), False)):
        chosen = np.full(len(table.jobs), -1)
        for j, state in enumerate(table.jobs):
            if state.job.id in jobs:
                chosen[j] = table.start[j]
        assert within(make_case(round, table, question.values), chosen) is allowed
