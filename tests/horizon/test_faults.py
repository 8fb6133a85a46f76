"""What breaks, in the driver: every figure beside its arithmetic, and all policies through it."""

from functools import cache
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ronda.formulations.bounds.clairvoyant import bounds
from ronda.horizon.driver import run, still
from ronda.horizon.journal import Change
from ronda.horizon.state import ClusterState
from ronda.instances import generate
from ronda.instances.budget import Budget, EnergyBudget
from ronda.instances.check.checker import check
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.instance import Faults, Instance, Outage, Straggler
from ronda.instances.job import Allocation, Costs, Estimate, Job, Option, Truth
from ronda.instances.outcome.metrics import summarise
from ronda.instances.plan import Plan
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.schedule import Failure
from ronda.solvers.contract import Capability
from ronda.solvers.policies.rigid.queues import Fifo
from ronda.solvers.registry import POLICIES, policy

GPU = GpuType(name="G", memory_gib=16, idle_w=10)
WORK = Profile(name="work", throughput={"G": Rigid()}, power={"G": PowerCurve(a_w=60)})


def job(job_id="a", gpus=1, submit_s=0.0, preemptible=True, work=100.0, **truth):
    """Return a rigid job, whose work is seconds."""
    return Job(
        id=job_id,
        submit_s=submit_s,
        profile="work",
        gpus=gpus,
        preemptible=preemptible,
        estimate=Estimate(work=work),
        truth=Truth(work=work, **truth),
    )


def instance(*jobs, nodes=2, checkpoint_s=30.0, **faults):
    """Return an instance on nodes of two GPUs that draw 100 W; a restart costs 10 s."""
    return Instance(
        name="breaks",
        cluster=uniform_cluster(GPU, nodes, 2, host_idle_w=80.0),
        profiles={"work": WORK},
        jobs=jobs,
        costs=Costs(restart_s=10.0, checkpoint_s=checkpoint_s),
        faults=Faults(**faults),
    )


class Watcher(Fifo):
    """Fifo that keeps the rounds that it is shown."""

    name: ClassVar[str] = "watcher"

    def __init__(self):
        super().__init__()
        self.rounds = []

    def plan(self, round, **given):
        """Start what fits."""
        self.rounds.append(round)
        return super().plan(round, **given)


def driven(given):
    """Return the schedule of fifo, in order by the checker, and the rounds that it saw."""
    watcher = Watcher()
    schedule = run(given, watcher)
    assert check(given, schedule) == []
    assert all(not r.violations for r in schedule.rounds)
    return schedule, watcher.rounds


def spans(schedule, k=0):
    """Return start, resume, end, work and nodes of each segment of a job."""
    segments = schedule.jobs[k].segments
    return [
        (s.start_s, s.resume_s, s.end_s, s.done, tuple(n for n, _ in s.placement)) for s in segments
    ]


def test_a_failed_node_costs_what_is_not_saved():
    """At 50 s 20 s are lost since the checkpoint at 30; node 1 takes over, after a restart."""
    schedule, rounds = driven(instance(job(), outages=(Outage(node=0, start_s=50, end_s=90),)))
    assert spans(schedule) == [(0, 0, 50, 30, (0,)), (50, 60, 130, 70, (1,))]
    assert schedule.failures == (Failure(time_s=50, job="a", node=0, lost=20, lost_s=20),)
    assert [r.cluster.out for r in rounds] == [(), ((0, 2),), ()]
    assert rounds[1].cluster.topology.pools[0].gpus == 2
    # Busy 50 + 70 s at 60 W, paused 10 s at 10 W; hosts 2 x 130 s less 40 s at 80 W.
    energy = schedule.energy
    assert (energy.busy_j, energy.paused_j, energy.host_j) == (7200, 100, 17_600)
    assert energy.idle_gpu_j == 10 * (4 * 130 - 2 * 40 - 130)
    figures = summarise(instance(job(), outages=(Outage(node=0, start_s=50, end_s=90),)), schedule)
    assert (figures["failures"], figures["lost_gpu_s"]) == (1, 20)


def test_a_drained_node_gives_nothing_away_and_loses_nothing():
    """From 20 s its other GPU is withheld; at 50 s the job moves on with all it has done."""
    outage = Outage(node=0, start_s=50, end_s=90, notice_s=30)
    jobs = (job(preemptible=False), job("b", submit_s=25, work=10), job("c", 2, 30, work=10))
    schedule, rounds = driven(instance(*jobs, outages=(outage,)))
    # "b" goes to node 1, so that "c" waits for it until 35 s; "a" follows at 50 s.
    assert spans(schedule) == [(0, 0, 50, 50, (0,)), (50, 60, 110, 50, (1,))]
    assert spans(schedule, 1) == [(25, 25, 35, 10, (1,))]
    assert spans(schedule, 2) == [(35, 35, 45, 10, (1,))]
    assert schedule.failures == ()
    assert rounds[1].cluster.out == ((0, 1),)


def test_a_drained_node_is_off_as_soon_as_it_is_empty():
    """The job ends at 10 s, the node draws nothing from then to 90 s."""
    outage = Outage(node=0, start_s=50, end_s=90, notice_s=45)
    jobs = (job(work=10), job("b", submit_s=20, work=80))
    schedule, rounds = driven(instance(*jobs, nodes=2, outages=(outage,)))
    assert schedule.energy.host_j == 80 * (2 * 100 - 80)
    assert rounds[-2].cluster.out == ((0, 2),)


def test_a_job_fails_where_its_truth_says_and_may_try_again_so_often():
    """At work 40 it goes back to 30, at 45 to 30 + 10 s from its last start; then it is over."""
    given = instance(job(failures=(40.0, 65.0)), retries=1)
    schedule, _ = driven(given)
    assert spans(schedule) == [(0, 0, 40, 30, (0,)), (40, 50, 85, 30, (0,))]
    assert schedule.jobs[0].failed
    assert schedule.jobs[0].end_s == 85
    again = instance(job(failures=(40.0, 65.0)), retries=2)
    schedule, _ = driven(again)
    assert spans(schedule)[2] == (85, 95, 135, 40, (0,))
    assert not schedule.jobs[0].failed
    assert [f.lost for f in schedule.failures] == [10, 5]
    assert bounds(given).mean_jct_s <= 85


def test_a_slow_node_shows_in_the_measured_rate_alone():
    """At half speed from 20 to 60 s it has done 40 by then, and ends at 120."""
    slow = Straggler(node=0, start_s=20, end_s=60, speed=0.5)
    jobs = (job(), *(job(f"b{t}", submit_s=t, work=1) for t in (10, 30, 70)))
    schedule, rounds = driven(instance(*jobs, stragglers=(slow,)))
    assert spans(schedule)[0] == (0, 0, 120, 100, (0,))
    seen = {r.now_s: r.running[0] for r in rounds if r.running}
    assert [seen[t].allocation.option.rate for t in (10, 30, 70)] == [1, 0.5, 1]
    assert [seen[t].done_at(t) for t in (10, 30, 70)] == [10, 25, 50]


def test_a_failure_on_a_slow_node_goes_back_by_time():
    """Half speed from 20 s; at 70 s the checkpoint is that of 60 s: 20 + 20 of 45 are kept."""
    slow = Straggler(node=0, start_s=20, end_s=500, speed=0.5)
    outage = Outage(node=0, start_s=70, end_s=80)
    schedule, _ = driven(instance(job(), nodes=1, stragglers=(slow,), outages=(outage,)))
    assert schedule.failures == (Failure(time_s=70, job="a", node=0, lost=5, lost_s=10),)
    assert spans(schedule)[1][:3] == (80, 90, 90 + 60 / 0.5)


def test_truth_moves_progress_and_meter_but_not_the_claims():
    """Twice as fast and at 1.5 times the watts: 50 s at 90 W, but rounds say 60 W."""
    given = instance(job(throughput=2.0, power=1.5), job("b", submit_s=30))
    schedule, rounds = driven(given)
    assert spans(schedule)[0] == (0, 0, 50, 100, (0,))
    assert schedule.energy.busy_j == 50 * 90 + 100 * 60
    shown = rounds[1].running[0]
    assert (shown.allocation.option.power_w, shown.allocation.option.rate) == (60, 2)
    assert shown.done_at(30) == 60
    assert bounds(given).mean_jct_s <= (50 + 100) / 2


def test_a_job_that_would_use_up_the_budget_at_once_is_not_looked_at_all_the_time():
    """It draws 6e13 W from 30 s on: until then a look would be due each few picoseconds."""
    energy = EnergyBudget(joules=4e6, horizon_s=1e4, window_s=600.0)
    hot = instance(job(submit_s=500.0, power=1e12, work=10.0))
    given = replace(hot, budget=Budget(energy=energy), costs=Costs(start_s=30.0))
    schedule = run(given, "fifo")
    assert schedule.jobs[0].end_s == 540.0
    assert len(schedule.rounds) < 10


def test_reports_are_late_or_lost():
    """Measured at 10 s, shown 15 s later; in the silence nothing is measured at all."""
    late = (job(throughput=0.5), *(job(f"b{t}", submit_s=t, work=1) for t in (10, 20, 30)))
    _, rounds = driven(instance(*late, report_s=15.0))
    seen = {r.now_s: r.running[0].allocation.option.rate for r in rounds if r.running}
    assert [seen[t] for t in (10, 20, 30)] == [1, 1, 0.5]
    _, rounds = driven(instance(*late, silences=((5.0, 25.0),)))
    seen = {r.now_s: r.running[0].allocation.option.rate for r in rounds if r.running}
    assert [seen[t] for t in (10, 20, 30)] == [1, 1, 0.5]


def test_decisions_take_effect_when_they_are_made():
    """A round at 0 s counts from 5 s; what arrives at 3 s is asked for then, and starts at 10."""
    schedule, rounds = driven(instance(job(), job("b", submit_s=3), decision_s=5.0))
    assert [s[0][0] for s in (spans(schedule), spans(schedule, 1))] == [5, 10]
    assert [r.now_s for r in rounds][:2] == [0, 5]
    assert [r.now_s for r in schedule.rounds][:2] == [5, 10]


def test_a_decision_that_is_overtaken_is_cut():
    """The node that it chose fails before it takes effect: the job starts by the next one."""
    outage = Outage(node=0, start_s=3, end_s=50)
    schedule, _ = driven(instance(job(), outages=(outage,), decision_s=5.0))
    assert spans(schedule) == [(10, 10, 110, 100, (1,))]


EVERYTHING = generate.Breakage(
    node_failures=40.0,
    repair_s=300.0,
    drains=30.0,
    drain_s=600.0,
    notice_s=300.0,
    job_failures=1.0,
    retries=1,
    checkpoint_s=60.0,
    stragglers=0.3,
    slow_s=300.0,
    speed_error=0.2,
    power_error=0.2,
    silences=0.2,
    silence_s=120.0,
    report_s=10.0,
    decision_s=5.0,
)


@cache
def all_at_once(jobs, seed):
    """Return a small generated instance in which everything breaks, of minutes and not hours."""
    plain = generate.horizon(jobs, 16, "loose", seed)
    short = tuple(
        replace(
            job,
            submit_s=job.submit_s / 20,
            estimate=replace(job.estimate, work=job.estimate.work / 20, sd=job.estimate.sd / 20),
            truth=Truth(work=job.truth.work / 20),
        )
        for job in plain.jobs
    )
    return generate.broken(replace(plain, jobs=short, curves={}), EVERYTHING, seed)


@cache
def least_jct_s(jobs, seed):
    """Return the bound on the mean JCT of such an instance under any policy."""
    return bounds(all_at_once(jobs, seed)).mean_jct_s


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_comes_through(name):
    """No plan breaks a rule, nor does the schedule; jobs end, and failed as they had to."""
    given = all_at_once(5, 2)
    made = policy(name, **({"generations": 3} if name.startswith("evolve") else {}))
    schedule = run(given, made, time_limit_s=None)
    assert check(given, schedule) == []
    assert not any(record.violations for record in schedule.rounds)
    assert schedule.failures
    dead = [len(job.truth.failures) > 1 for job in given.jobs]
    assert [outcome.failed for outcome in schedule.jobs] == dead
    if Capability.ELASTIC not in made.capabilities:
        assert least_jct_s(5, 2) <= summarise(given, schedule)["mean_jct_s"]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(("fifo", "srtf", "tiresias", "race-to-idle")))
def test_driver_and_checker_agree(seed, name):
    """Whatever breaks, the schedule is what the checker works out by itself."""
    given = all_at_once(6, seed)
    schedule = run(given, name)
    assert check(given, schedule) == []
    assert not any(record.violations for record in schedule.rounds)


def test_a_killed_run_goes_on(tmp_path):
    """With faults and late decisions too, a journal that is cut gives the same schedule."""
    given, path = all_at_once(6, 3), tmp_path / "journal.jsonl"
    whole = run(given, "prices(gap=0.01)", time_limit_s=None, journal=path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]) + b'{"cut')
    again = run(given, "prices(gap=0.01)", time_limit_s=None, journal=path)
    assert (again.jobs, again.energy, again.failures) == (
        whole.jobs,
        whole.energy,
        whole.failures,
    )


def test_faults_change_nothing_where_there_are_none():
    """With no fault drawn the instance is the very same."""
    plain = generate.horizon(5, 16, "balanced", 0)
    assert generate.broken(plain, generate.Breakage(), 0) is plain
    assert replace(plain, faults=Faults()) == plain


def test_what_is_left_of_an_overtaken_plan_fits():
    """Two jobs would change places when one of the nodes failed: the first has room."""
    outage = Outage(node=1, start_s=3, end_s=50)
    state = ClusterState(instance(job(gpus=2), job("b", gpus=2), outages=(outage,)))
    option = Option(pool=0, gpus=2, span="node", rate=1.0, power_w=120.0)
    first, second = (Allocation(option=option, placement=((n, 2),)) for n in (0, 1))
    state.advance(0.0)
    state.ledger.accept(Plan(allocations={"a": first, "b": second}))
    state.apply(Change(held={"a": first, "b": second}))
    state.advance(3.0)
    assert still(
        state, state.snapshot(1.0), Plan(allocations={"a": second, "b": first})
    ).allocations == {"a": first}
    assert still(
        state, state.snapshot(1.0), Plan(allocations={"b": first, "a": second})
    ).allocations == {"b": first}
