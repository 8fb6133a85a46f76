"""An energy budget at all times of its window: hand-made."""

import pytest
from msgspec.structs import replace

import ronda
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.plan import SolutionStatus
from ronda.instances.profile import Parametric, PowerCurve, Profile
from ronda.instances.round import Round

POLICIES = ("prices", "milp", "milp(placement=exact)", "genetic", "evolve")


def a_round(watts, seconds, nodes=1, **fields):
    """Return a round of jobs of one GPU each, which draw watts for seconds, on nodes of two GPUs.

    A sample takes a second. The window is of 60 s; idle GPUs, hosts and nodes asleep draw nothing.
    """
    given = {
        name: fields.pop(name) for name in ("host_idle_w", "wake_s", "wake_w") if name in fields
    }
    model = Parametric(alpha_c_s=1.0, beta_c_s=0.0)
    curves = {f"p{k}": PowerCurve(a_w=float(w), b_w=0.0) for k, w in enumerate(watts)}
    profiles = {
        name: Profile(name=name, throughput={"G": model}, power={"G": curve})
        for name, curve in curves.items()
    }
    jobs = [
        Job(id=f"j{k}", submit_s=0.0, profile=f"p{k}", estimate=Estimate(work=float(s)))
        for k, s in enumerate(seconds)
    ]
    group = NodeGroup(name="n", count=nodes, gpus_per_node=2, gpu_type="G", rack="r", **given)
    return Round(
        now_s=1000.0,
        cluster=Cluster(
            gpu_types=(GpuType(name="G", memory_gib=16.0),),
            node_groups=(group,),
            racks=(Rack(name="r", power_cap_w=fields.pop("rack_w", None)),),
        ),
        profiles=profiles,
        waiting=tuple(JobState(job=job, since_s=0.0) for job in jobs),
        window_s=60.0,
        **fields,
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_that_end_leave_their_joules_to_others(policy):
    """2,500 J and 50 W: 200 W for 10 s and 55 W for an hour never use more.

    By 10 s 2,000 + 550 J of 3,000 J, by 60 s 2,000 + 3,300 J of 5,500 J.
    """
    round_ = a_round([200, 55], [10, 3600], energy_j=5500.0, banked_j=2500.0)
    plan = ronda.solve(round_, policy)
    assert plan.allocations.keys() == {"j0", "j1"}
    assert plan.status is SolutionStatus.OPTIMAL


@pytest.mark.parametrize("policy", POLICIES)
def test_a_budget_that_is_kept_in_the_end_is_kept_before(policy):
    """280 W for 10 s and 30 W: by 60 s 2,800 + 1,800 J of 5,500 J, but by 10 s 3,100 J of 3,000.

    Either alone is within it.
    """
    round_ = a_round([280, 30], [10, 3600], energy_j=5500.0, banked_j=2500.0)
    plan = ronda.solve(round_, policy)
    assert len(plan.allocations) == 1
    assert plan.status is SolutionStatus.OPTIMAL or policy in ("genetic", "evolve")
    for job in ("j0", "j1"):
        waiting = tuple(s for s in round_.waiting if s.job.id == job)
        alone = ronda.solve(ronda.Round(**_fields(round_) | {"waiting": waiting}), policy)
        assert alone.allocations.keys() == {job}


def _fields(round_):
    """Return the fields of a round by name."""
    return {name: getattr(round_, name) for name in round_.__struct_fields__}


def test_the_price_of_a_time_is_named():
    """The limit is by 10 s: a joule more then is worth something, and prices say so."""
    round_ = a_round([280, 30], [10, 3600], energy_j=5500.0, banked_j=2500.0)
    plan = ronda.solve(round_, "prices")
    assert plan.prices["energy_by[10.0]"] > 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("energy_j", "runs"), [(9000.0, 1), (8999.0, 0)])
def test_waking_takes_energy_only_until_a_node_is_awake(policy, energy_j, runs):
    """130 W for the job and its node for 60 s, and 40 W more for the first 30 s: 9,000 J."""
    fields = {"host_idle_w": 30.0, "wake_s": 30.0, "wake_w": 40.0, "asleep": (0,)}
    round_ = a_round([100], [3600], energy_j=energy_j, **fields)
    plan = ronda.solve(round_, policy)
    assert len(plan.allocations) == runs
    assert plan.status is SolutionStatus.OPTIMAL or (policy in ("genetic", "evolve") and not runs)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("rack_w", "runs"), [(170.0, 1), (169.0, 0)])
@pytest.mark.parametrize("state", ["asleep", "waking"])
def test_waking_counts_below_the_cap_of_a_rack(policy, rack_w, runs, state):
    """100 W for the job, 30 W for its node and 40 W while that wakes, woken now or before."""
    fields = {"host_idle_w": 30.0, "wake_s": 30.0, "wake_w": 40.0, state: (0,)}
    plan = ronda.solve(a_round([100], [3600], rack_w=rack_w, **fields), policy)
    assert len(plan.allocations) == runs
    assert plan.status in (SolutionStatus.OPTIMAL, SolutionStatus.FEASIBLE)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_node_that_still_wakes_may_sleep_again(policy):
    """Two nodes wake below 200 W: 130 W for one with its job, and 40 W; both would take 240 W."""
    fields = {"host_idle_w": 30.0, "wake_s": 30.0, "wake_w": 40.0, "waking": (0, 1)}
    plan = ronda.solve(a_round([100], [3600], nodes=2, rack_w=200.0, **fields), policy)
    assert (len(plan.allocations), len(plan.asleep)) == (1, 1)


@pytest.mark.parametrize("policy", ["prices", "milp", "milp(placement=exact)"])
def test_what_runs_is_charged_for_as_long_as_the_checker_does(policy):
    """At half its rate 10 units of work take 20 s, and 5 s more until the job has ended.

    100 W for 25 s are 2,500 J, all that there are: a joule less and it stops.
    """
    option = Option(pool=0, gpus=1, span="node", rate=0.5, power_w=100.0, teardown_s=5.0)
    held = Allocation(option=option, placement=((0, 1),))
    for energy_j, runs in ((2500.0, 1), (2499.0, 0)):
        round_ = a_round([100], [10], energy_j=energy_j)
        state = JobState(job=round_.waiting[0].job, since_s=1000.0, started=True, allocation=held)
        asked = _fields(round_) | {"waiting": (), "running": (state,)}
        assert len(ronda.solve(ronda.Round(**asked), policy).allocations) == runs


def test_the_nodes_that_are_used_are_charged():
    """Not those that would be cheapest: 60 W on a host of 100 W, as the rack of a free one is full.

    By 30 s, when the job ends, 4,800 J; allowed are 100 + 8,300 / 2 = 4,250 J. The window's 8,400 J
    bear it: 4,800 + 30 x 100 J.
    """
    round_ = a_round([60], [30], energy_j=8400.0, banked_j=100.0)
    (free,) = round_.cluster.node_groups
    dear = replace(free, name="dear", rack="s", host_idle_w=100.0)
    racks = (Rack(name="r", power_cap_w=10.0), Rack(name="s"))
    cluster = replace(round_.cluster, node_groups=(free, dear), racks=racks)
    for spec in POLICIES:
        plan = ronda.solve(replace(round_, cluster=cluster), spec)
        assert plan.status is not SolutionStatus.FALLBACK, plan.record.message
        assert plan.allocations == {}
    plan = ronda.solve(replace(round_, cluster=cluster, banked_j=1300.0), "milp(placement=exact)")
    assert plan.allocations.keys() == {"j0"}
