"""Parts and fractions of GPUs: examples with their answers, and engines against every plan."""

import pytest
from msgspec.structs import replace

import ronda
from every_site_plan import best_plan
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.solvers.decision.plan import Question
from ronda.solvers.registry import policy
from tests.helpers.cut_gpus import PARTS, cut_cluster, cut_round
from tests.helpers.cut_rounds import drawn

ENGINES = ("milp", "prices")
VALUED = "objective=weighted-goodput,power=1.0"
ROUNDS, SETS = 40, 8


def solved(round, engine):
    """Return a valid plan of a round."""
    plan = ronda.solve(round, f"{engine}({VALUED})")
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
    assert plan.bound == pytest.approx(plan.objective)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_3g_lose_the_seventh_compute_slice(engine):
    """A 1g waits beside them."""
    jobs = {"a": {"weight": 9.0}, "b": {"weight": 9.0}}
    plan = solved(cut_round({"a": "3g", "b": "3g", "c": "1g"}, jobs=jobs), engine)
    assert set(plan.allocations) == {"a", "b"}
    assert plan.bound == pytest.approx(plan.objective)


@pytest.mark.parametrize("engine", ENGINES)
def test_of_three_fractions_above_a_half_two_run_on_two_gpus(engine):
    """Their sum, 1.8, would do."""
    round = cut_round(dict.fromkeys("abc", 0.6), cluster=cut_cluster(gpus=2, shared=True))
    plan = solved(round, engine)
    assert len(plan.allocations) == 2
    assert plan.bound == pytest.approx(plan.objective)


def test_one_gpu_has_media_engines_for_one_part():
    """Of two parts with media engines one runs, and a plain 1g beside it."""
    plan = solved(cut_round({"a": "1g+me", "b": "1g+me", "c": "1g"}), "milp")
    assert len(plan.allocations) == 2
    assert plan.bound == pytest.approx(plan.objective)


def test_a_fixed_layout_counts_each_part():
    """One 3g and two 2g per GPU, whatever else the slices would hold; whole GPUs have none."""
    cluster = cut_cluster(gpus=2, recut="never", cut=(PARTS["3g"], PARTS["2g"], PARTS["2g"]))
    round = cut_round({"a": "3g", "b": "3g", "c": "3g", "d": "2g"}, cluster=cluster)
    plan = solved(round, "milp")
    assert len(plan.allocations) == 3
    assert "d" in plan.allocations
    assert plan.bound == pytest.approx(plan.objective)
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
            plan = policy(f"{engine}({VALUED})").plan(round, deadline=Deadline(), seed=0)
            assert check(round, plan) == []
            assert plan.objective <= best + 1e-6
            assert plan.bound >= best - 1e-6
            assert plan.objective >= best * (1 - 1e-4) - 1e-6
