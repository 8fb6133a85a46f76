"""The marginal greedy policies: PowerFlow's relative rule and the two-price rule."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.horizon.driver import run
from ronda.horizon.solve import solve
from ronda.instances import generate
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.check.checker import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.instance import Cadence
from ronda.instances.job import Costs, Estimate, Job, JobState
from ronda.instances.profile import PowerCurve, Profile, Tabular
from ronda.instances.round import Round
from ronda.solvers.registry import policy

NAMES = ("powerflow", "powerflow-prices", "milp-energy")


def paper_round(*work, watts=None, gpus=4, asleep=()):
    """Return a round of jobs on nodes of two GPUs, with energies that fit on paper.

    One GPU does 1 unit a second, two do 1.6; at half the clock half of that. A busy GPU draws
    100 W at full clock and 60 W at half, so a unit costs 100 J on one GPU at full clock and 120 J
    at half, and 125 J on two. Hosts draw 40 W, idle GPUs and sleeping nodes nothing.
    """
    table = Tabular(
        gpus=(1, 2),
        nodes=(1, 1),
        local_batch=(2.0, 1.0),
        step_s=(2.0, 1.25),
        sync_s=(0.0, 0.0),
    )
    profile = Profile(
        name="p",
        base_batch=2.0,
        throughput={"G": table},
        power={"G": PowerCurve(a_w=20.0, b_w=80.0)},
    )
    group = NodeGroup(
        name="n", count=gpus // 2, gpus_per_node=2, gpu_type="G", host_idle_w=40.0, wake_s=60.0
    )
    states = tuple(
        JobState(
            job=Job(
                id=f"j{k}",
                submit_s=0.0,
                profile="p",
                min_gpus=1,
                max_gpus=2,
                estimate=Estimate(work=w),
            ),
            since_s=0.0,
        )
        for k, w in enumerate(work)
    )
    return Round(
        now_s=100.0,
        cluster=Cluster(
            gpu_types=(GpuType(name="G", memory_gib=16, idle_w=0.0, clocks=(0.5, 1.0)),),
            node_groups=(group,),
        ),
        profiles={"p": profile},
        waiting=states,
        power_cap_w=watts,
        asleep=asleep,
    )


def chosen(plan):
    """Return (GPUs, clock) of every job that runs."""
    return {i: (a.option.gpus, a.option.clock) for i, a in plan.allocations.items()}


def test_starts_at_the_clock_of_least_energy():
    """Full clock on one GPU (100 J a unit): half clock would take twice as long for 120 J.

    With 140 W there is room for one node (40 W) and just that job; with 100 W only half clock fits:
    40 + 60 W.
    """
    assert chosen(solve(paper_round(100.0, watts=140.0), "powerflow")) == {"j0": (1, 1.0)}
    assert chosen(solve(paper_round(100.0, watts=100.0), "powerflow")) == {"j0": (1, 0.5)}
    assert chosen(solve(paper_round(100.0, watts=99.0), "powerflow")) == {}


def test_relative_rule_does_not_see_how_long_a_job_is():
    """Two jobs, 3 GPUs' worth of watts: both steps are worth the same, the first job takes it.

    A step from one GPU to two saves 37.5 % of the time for 25 % more energy whatever the job's
    length. The two-price rule gives it to the long job, which saves 375 s rather than 37.5 s.
    Watts: 2 nodes, 3 GPUs: 80 + 300 = 380.
    """
    round_ = paper_round(100.0, 1000.0, watts=380.0)
    assert chosen(solve(round_, "powerflow")) == {"j0": (2, 1.0), "j1": (1, 1.0)}
    assert chosen(solve(round_, "powerflow-prices")) == {"j0": (1, 1.0), "j1": (2, 1.0)}


@pytest.mark.parametrize("name", ["powerflow", "powerflow-prices"])
def test_both_rules_count_energy(name):
    """Two jobs, watts for one step: the step that draws less goes first, though it saves less.

    The second job computes for 1 s of a step of 1.25 s on two GPUs and draws 20 W while it
    synchronises: 2 (0.8 x 100 + 0.2 x 20) = 168 W, 105 J a unit; the first one 200 W, 125 J.
    Relative: 0.375 / 0.05 against 0.375 / 0.25. Two prices, 380 W and 4 GPUs, 20 W of a host with
    each GPU: 33.75 s / (88/380 + 1/4) = 70 against 37.5 s / (120/380 + 1/4) = 66. By time alone,
    or by time and GPUs, the first job would take the step.
    """
    round_ = paper_round(100.0, 90.0, watts=380.0)
    plain = round_.profiles["p"]
    table = msgspec.structs.replace(plain.throughput["G"], sync_s=(0.0, 0.25))
    curve = msgspec.structs.replace(plain.power["G"], sync_w=20.0)
    quiet = msgspec.structs.replace(plain, name="q", throughput={"G": table}, power={"G": curve})
    first, second = round_.waiting
    job = msgspec.structs.replace(second.job, profile="q")
    waiting = first, msgspec.structs.replace(second, job=job)
    profiles = {"p": plain, "q": quiet}
    plan = solve(msgspec.structs.replace(round_, profiles=profiles, waiting=waiting), name)
    assert chosen(plan) == {"j0": (1, 1.0), "j1": (2, 1.0)}


@pytest.mark.parametrize("name", ["powerflow", "powerflow-prices"])
def test_short_jobs_are_admitted_first(name):
    """Two GPUs' worth of watts for three jobs (one node of two, 40 + 200 W): the longest waits."""
    plan = solve(paper_round(900.0, 100.0, 200.0, watts=240.0), name)
    assert sorted(plan.allocations) == ["j1", "j2"]
    nodes = {node for a in plan.allocations.values() for node, _ in a.placement}
    assert len(nodes) == 1  # buddy allocation packs both
    assert plan.asleep is not None
    assert set(plan.asleep) == {0, 1} - nodes  # and powers off the rest


def test_empty_nodes_are_powered_off():
    """With watts to spare, the node that the only job does not need sleeps."""
    plan = solve(paper_round(100.0, watts=1000.0), "powerflow")
    assert chosen(plan) == {"j0": (2, 1.0)}
    assert plan.asleep is not None
    assert len(plan.asleep) == 1


def test_unknown_objective_is_refused():
    """Before any round is seen."""
    with pytest.raises(InputError, match="objective"):
        policy("powerflow-prices(objective=speed)")


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), severity=st.sampled_from(["loose", "balanced", "tight"]))
@pytest.mark.parametrize("name", ["powerflow", "powerflow-prices"])
def test_plans_of_generated_rounds_are_valid(name, seed, severity):
    """Never more GPUs, watts or energy than there are, as the checker sees it; powers of two."""
    round_ = generate.round(24, None, severity, seed)
    plan = solve(round_, name)
    assert check(round_, plan) == []
    assert all(a.option.gpus in (1, 2, 4, 8, 16, 32, 64, 128) for a in plan.allocations.values())
    assert plan.allocations or severity == "tight"
    assert plan.bound is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 1])
def test_schedules_stay_within_cap_and_budget(name, seed):
    """A whole horizon under a cap that drops and an energy budget: the checker finds nothing."""
    instance = generate.horizon(jobs=8, gpus=16, severity="tight", seed=seed)
    idle_w = instance.cluster.topology.idle_w
    watts = idle_w + 0.4 * 350.0 * 16
    instance = msgspec.structs.replace(
        instance,
        budget=Budget(
            power_cap_w=StepSeries(times_s=(0.0, 5000.0), values=(1.3 * watts, 1.1 * watts)),
            energy=EnergyBudget(joules=watts * 40_000.0, horizon_s=40_000.0),
        ),
    )
    schedule = run(instance, name, seed=seed, time_limit_s=None)
    assert check(instance, schedule) == []
    assert all(not record.violations for record in schedule.rounds)
    assert all(job.end_s is not None for job in schedule.jobs)
    assert np.isfinite(schedule.end_s)


def test_jobs_restart_no_more_where_it_costs_more():
    """By the climb from small alone, jobs restart 1,024 times at 600 s and 19 times at none."""
    made = generate.horizon(jobs=12, gpus=16, seed=3)
    changes = []
    for restart_s in (0.0, 600.0):
        instance = msgspec.structs.replace(
            made,
            budget=Budget(),
            costs=Costs(restart_s=restart_s),
            cadence=Cadence(period_s=60.0),
        )
        schedule = run(instance, "powerflow")
        changes.append(sum(len(job.segments) - 1 for job in schedule.jobs))
    assert changes[1] <= 2 * changes[0]
