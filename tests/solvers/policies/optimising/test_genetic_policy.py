"""The genetic policy: valid plans, honest bounds, parameters, deadlines, sleeping nodes."""

from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.formulations.options.table import option
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.round import Round
from ronda.solvers.contract import Policy
from ronda.solvers.policies.optimising.genetic import Genetic
from ronda.solvers.registry import policy as by_name

QUICK = Genetic(population=16, generations=10)


def decide(round_, policy=QUICK, *, seed=0, initial=None, limit_s=None):
    """Return the policy's plan."""
    return policy.plan(round_, deadline=Deadline(limit_s), seed=seed, initial=initial)


def rigid_round(*waiting, running=(), **fields):
    """Return a round on two nodes of 4 GPUs: 400 W a node awake and idle, 10 W asleep.

    Jobs are given by their GPUs, each of which draws 250 W, 200 W more than idle. Running ones
    must not be stopped and sit on the nodes in order.
    """
    group = NodeGroup(
        name="n", count=2, gpus_per_node=4, gpu_type="V100", host_idle_w=200.0, sleep_w=10.0
    )
    cluster = Cluster(
        gpu_types=(GpuType(name="V100", memory_gib=32, idle_w=50.0),), node_groups=(group,)
    )
    profile = Profile(
        name="rigid", throughput={"V100": Rigid()}, power={"V100": PowerCurve(a_w=250.0)}
    )

    def job(name, gpus, **more):
        return Job(
            id=name,
            submit_s=0,
            profile="rigid",
            gpus=gpus,
            estimate=Estimate(work=1000.0),
            **more,
        )

    held = tuple(
        JobState(
            job=job(f"r{node}", gpus, preemptible=False),
            since_s=0,
            started=True,
            allocation=Allocation(
                option=Option(pool=0, gpus=gpus, span="node", power_w=250.0 * gpus),
                placement=((node, gpus),),
            ),
        )
        for node, gpus in enumerate(running)
    )
    states = tuple(JobState(job=job(f"w{i}", n), since_s=0) for i, n in enumerate(waiting))
    return Round(
        cluster=cluster, profiles={"rigid": profile}, waiting=states, running=held, **fields
    )


@given(st.integers(0, 2**20), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_plans_are_valid_and_their_bounds_hold(k, seed):
    """The independent checker finds nothing, and the bound is no less than the objective."""
    round_ = generate.tiny_round(k)
    plan = decide(round_, seed=seed)
    assert check(round_, plan) == []
    assert plan.bound >= plan.objective
    assert plan.status in (SolutionStatus.OPTIMAL, SolutionStatus.FEASIBLE)
    if plan.status is SolutionStatus.OPTIMAL:
        assert plan.gap <= QUICK.gap + 1e-12


@pytest.mark.parametrize("severity", ["loose", "balanced", "tight"])
def test_plans_of_generated_rounds_are_valid_and_near_the_bound(severity):
    """With default parameters 48 elastic jobs come within 2 % of the dual bound."""
    round_ = generate.round(jobs=48, severity=severity, seed=4)
    plan = decide(round_, Genetic())
    assert check(round_, plan) == []
    assert plan.gap < 0.02
    assert severity != "tight" or plan.record.nodes >= 32 * 2
    assert plan.record.total_s >= plan.record.solve_s
    assert (plan.record.solve_s > 0) == (plan.record.nodes > 0)


def test_the_objective_is_the_value_of_what_is_placed():
    """It is the sum of the values of the options that got nodes."""
    round_ = generate.round(jobs=24, severity="tight", seed=5)
    plan = decide(round_)
    table = build(round_)
    worth = values(round_, table, "rank")
    chosen = {
        (table.jobs[table.job[k]].job.id, option(table, k)): worth[k] for k in range(len(table))
    }
    total = sum(chosen[job, a.option] for job, a in plan.allocations.items())
    assert plan.objective == pytest.approx(total)


def test_no_job_is_decided_at_once():
    """An empty round needs no search."""
    plan = decide(rigid_round())
    assert plan.allocations == {}
    assert (plan.stop, plan.status) == (StopReason.COMPLETE, SolutionStatus.OPTIMAL)
    assert plan.record.nodes == 0
    assert plan.objective == plan.bound == 0


def test_everything_that_fits_is_decided_at_once():
    """Three jobs of 4, 2 and 2 GPUs fill both nodes: no search is needed to see it."""
    plan = decide(rigid_round(4, 2, 2))
    assert set(plan.allocations) == {"w0", "w1", "w2"}
    assert (plan.stop, plan.status) == (StopReason.COMPLETE, SolutionStatus.OPTIMAL)
    assert plan.record.nodes == 0
    assert plan.gap == 0


def test_what_greedy_choice_proves_needs_no_search():
    """Of four equal jobs of 4 GPUs two run: the dual bound proves it without a search."""
    round_ = rigid_round(4, 4, 4, 4)
    plan = decide(round_)
    assert len(plan.allocations) == 2
    assert (plan.stop, plan.status) == (StopReason.GAP, SolutionStatus.OPTIMAL)
    assert plan.record.nodes == 0
    assert [worth for _, worth in plan.record.incumbents] == [plan.objective]
    assert check(round_, plan) == []


def test_a_node_sleeps_where_only_that_leaves_the_power():
    """Of 1000 W, two nodes awake leave 200; one asleep leaves 590, enough for 2 GPUs (400 W)."""
    round_ = rigid_round(2, power_cap_w=1000.0)
    plan = decide(round_)
    assert set(plan.allocations) == {"w0"}
    assert len(plan.asleep) == 1
    assert check(round_, plan) == []


def test_nodes_stay_awake_where_power_suffices():
    """1200 W serve two idle nodes (800 W) and 2 GPUs (400 W): nothing is put to sleep."""
    plan = decide(rigid_round(2, power_cap_w=1200.0))
    assert set(plan.allocations) == {"w0"}
    assert not plan.asleep


def test_jobs_that_must_run_spread_over_nodes_keep_these_awake():
    """Two of 1 GPU each on two nodes draw 1200 W: 1250 W leave no room, though one node would."""
    round_ = rigid_round(1, running=(1, 1), power_cap_w=1250.0)
    plan = decide(round_)
    assert set(plan.allocations) == {"r0", "r1"}
    assert check(round_, plan) == []


@pytest.mark.parametrize(("cap_w", "runs"), [(1799.0, {"r0"}), (1800.0, {"r0", "w0"})])
def test_a_job_beside_one_that_must_run_pays_for_the_node_that_it_wakes(cap_w, runs):
    """Two nodes awake, 4 + 1 busy GPUs: 800 + 800 + 200 = 1800 W, of which waking takes 390."""
    round_ = rigid_round(1, running=(4,), power_cap_w=cap_w)
    plan = decide(round_)
    assert set(plan.allocations) == runs
    assert not plan.details.unplaced
    assert check(round_, plan) == []


def test_a_limit_gives_way_to_a_job_that_may_not_be_stopped():
    """Its node draws 400 + 800 W, the other 10 W: it goes on, and the 900 W are named."""
    round_ = rigid_round(1, running=(4,), power_cap_w=900.0)
    plan = decide(round_)
    assert plan.allocations == {"r0": round_.running[0].allocation}
    (conflict,) = plan.details.conflicts
    assert "900 W and job r0, which may not be stopped: 1210 W" in conflict.message


def test_a_job_that_is_left_alone_keeps_its_very_allocation():
    """Unchanged running jobs keep their `Allocation` object."""
    round_ = rigid_round(2, running=(4, 1))
    plan = decide(round_)
    for state in round_.running:
        assert plan.allocations[state.job.id] is state.allocation


def test_same_seed_same_plan():
    """Twice the same, but for the times."""
    round_ = generate.round(jobs=32, severity="tight", seed=6)
    one, two = (msgspec.structs.replace(decide(round_, seed=11), record=None) for _ in range(2))
    assert one == two


def test_starts_from_the_initial_plan():
    """With a search too small to find it again, a good initial plan is not lost."""
    round_ = generate.round(jobs=60, severity="tight", seed=1)
    good = decide(round_, by_name("milp(gap=1e-6)"))
    tiny = Genetic(population=4, generations=1, gap=1e-9)
    assert decide(round_, tiny).objective < good.objective * (1 - 1e-9)
    assert decide(round_, tiny, initial=good).objective >= good.objective * (1 - 1e-12)


def test_returns_in_time(processor_time):
    """A limit of 1 s ends an endless search within 1.3 s, with an incumbent and a bound."""
    endless = Genetic(generations=10**9, stagnation=10**9, gap=0.0)
    round_ = generate.round(jobs=192, severity="tight", seed=1)
    deadline = Deadline(1.0)
    plan = endless.plan(round_, deadline=deadline, seed=0)
    assert deadline.elapsed() < 1.3
    assert plan.stop is StopReason.TIME_LIMIT
    assert 0 < plan.gap < 0.05
    assert check(round_, plan) == []
    times = [seconds for seconds, _ in plan.record.incumbents]
    assert times == sorted(times)
    assert times[-1] <= plan.record.total_s


def trace(**changed):
    """Return the evaluations and incumbents of a search with some other parameters."""
    round_ = generate.round(jobs=40, gpus=32, severity="tight", seed=2)
    usual = {"generations": 10, "stagnation": 10, "population": 16, "gap": 1e-9}
    record = decide(round_, Genetic(**(usual | changed))).record
    return record.nodes, [worth for _, worth in record.incumbents]


@cache
def usual_trace():
    """Return what the usual parameters lead to."""
    return trace()


@pytest.mark.parametrize(
    "other",
    [
        {"population": 24},
        {"generations": 5},
        {"seeded": False},
        {"stagnation": 1},
        {"gap": 0.05},
        {"objective": "density"},
    ],
)
def test_every_parameter_matters(other):
    """Another value of any parameter leads to another search."""
    assert trace(**other) != usual_trace()


def test_the_same_parameters_lead_to_the_same_search():
    """Its evaluations and incumbents are the same."""
    assert trace() == usual_trace()


@pytest.mark.parametrize(
    "wrong",
    [
        {"population": 3},
        {"generations": 0},
        {"stagnation": 0},
        {"gap": 2.0},
        {"objective": "rnak"},
    ],
)
def test_parameters_out_of_range_are_refused(wrong):
    """Each is named in a one-line error when the policy is made."""
    with pytest.raises(InputError, match=next(iter(wrong))) as caught:
        Genetic(**wrong)
    assert "\n" not in str(caught.value)


def test_unseeded_it_starts_from_nothing():
    """One generation of four: worth less than the greedy choice that a seeded search starts from.

    The bound is the same, and a longer search gets near it without any start.
    """
    round_ = generate.round(jobs=24, severity="tight", seed=0)
    short = {"population": 4, "generations": 1}
    seeded, other = (decide(round_, Genetic(seeded=s, **short)) for s in (True, False))
    assert other.objective < seeded.objective
    assert other.bound == pytest.approx(seeded.bound)
    longer = decide(round_, Genetic(seeded=False))
    assert check(round_, longer) == []
    assert other.objective < longer.objective
    assert longer.gap < 0.1


def test_is_found_by_its_name():
    """The registry makes it from text."""
    made = by_name("genetic(population=16, seeded=false)")
    assert made == Genetic(population=16, seeded=False)
    assert isinstance(made, Policy)
