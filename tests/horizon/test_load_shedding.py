"""A cap that drops: jobs are slowed, then stopped in order of least loss, and the record says so.

On one node of 4 GPUs at 50 W idle, host 200 W, jobs a (from 0 s) and b (from 10 s) run on 2 GPUs
each for 100 s: 400 W + 2 x 400 W = 1,200 W. A restart takes 10 s.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from msgspec.structs import replace

import arrays
from ronda.formulations.options.stated_rows import Limit
from ronda.horizon.driver import run
from ronda.horizon.load_shedding import fallback
from ronda.horizon.state import ClusterState
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.check.checker import Ledger, check
from ronda.instances.cluster import Rack
from ronda.instances.errors import RondaError
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Option
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.policies.rigid.queues import Fifo
from ronda.solvers.registry import policy

JOBS = [("a", 0, 2, 100), ("b", 10, 2, 100)]


@dataclass(frozen=True)
class Full:
    """Starts every job at full clock if there are GPUs, whatever the watts."""

    name: ClassVar[str] = "full"
    capabilities: ClassVar[Capability] = Capability.NONE

    def plan(self, round, *, deadline, seed, initial=None):
        """Ask FIFO about a round without limits."""
        free = replace(round, power_cap_w=None, energy_j=None, sustained_w=None)
        return Fifo().plan(free, deadline=deadline, seed=seed, initial=initial)


def dip(low_w):
    """Return a cap that leaves room for both jobs but between 50 and 80 s."""
    series = StepSeries(times_s=(0.0, 50.0, 80.0), values=(1200.0, low_w, 1200.0))
    return Budget(power_cap_w=series)


def ends(schedule):
    """Return completion times by job."""
    return {job.id: job.end_s for job in schedule.jobs}


def at(schedule, now_s):
    """Return the record of a round."""
    return next(r for r in schedule.rounds if r.now_s == now_s)


def test_a_shallow_drop_slows_the_job_with_the_least_loss_per_watt(make_clocked):
    """200 W must be saved: one job at half clock, for 30 s."""
    # Over 600 s clock 0.5 loses 2 (10 + 590/2) GPU-seconds for 200 W, 3.05 a watt; clock 0.75
    # 2 (10 + 590/4) for 100 W, 3.15. Of equals the first: a has done 50 s when it pauses, 10 s of
    # its work at half clock until 80 s, pauses again, and has 40 s to go: 130 s.
    instance = make_clocked(JOBS, budget=dip(1000.0), costs=Costs(restart_s=10.0))
    schedule = run(instance, "fifo")
    assert ends(schedule) == {"a": 130, "b": 110}
    dropped, back = at(schedule, 50), at(schedule, 80)
    assert dropped.status is SolutionStatus.FALLBACK
    assert (dropped.slowed_jobs, dropped.stopped_jobs, dropped.power_w) == (("a",), (), 1000.0)
    assert (back.restored_jobs, back.violations) == (("a",), ())
    assert [s.option.clock for s in schedule.jobs[0].segments] == [1.0, 0.5, 1.0]
    assert check(instance, schedule) == []


def test_a_deep_drop_slows_then_stops_the_job_that_loses_least(make_clocked):
    """Both at half clock draw 800 W of 650 W: b, which ran for 40 s, stops; a goes on at half."""
    # b has done 40 s of its work; it resumes at 80 s, pauses 10 s, and has 60 s to go: 150 s.
    instance = make_clocked(JOBS, budget=dip(650.0), costs=Costs(restart_s=10.0))
    schedule = run(instance, "fifo")
    assert ends(schedule) == {"a": 130, "b": 150}
    dropped = at(schedule, 50)
    assert (dropped.slowed_jobs, dropped.stopped_jobs, dropped.power_w) == (("a",), ("b",), 600.0)
    assert check(instance, schedule) == []


def test_no_more_is_slowed_than_is_needed_beside_what_is_stopped(make_clocked):
    """Three jobs at half clock are too many; once two are stopped, the third keeps its clock."""
    # Two nodes idle at 800 W. Jobs of 4, 2 and 2 GPUs add 800, 400 and 400 W, half that at half
    # clock: 1,600 W of 1,500 W. So c stops (2 GPUs x 30 s). Beside it the first step, a at half
    # clock, is not enough (800 + 400 + 400 = 1,600 W), the second is: 1,400 W.
    jobs = [("a", 0, 4, 100), ("b", 10, 2, 100), ("c", 20, 2, 100)]
    times_s = (0.0, 50.0, 80.0)
    cap = StepSeries(times_s=times_s, values=(2400.0, 1500.0, 2400.0))
    dropped = at(run(make_clocked(jobs, nodes=2, budget=Budget(power_cap_w=cap)), "fifo"), 50)
    assert (dropped.slowed_jobs, dropped.stopped_jobs) == (("a", "b"), ("c",))
    # If a must go on (1,600 W), c and b stop under 1,650 W, and nothing is left to be slowed.
    cap = StepSeries(times_s=times_s, values=(2400.0, 1650.0, 2400.0))
    firm = make_clocked(jobs, nodes=2, budget=Budget(power_cap_w=cap))
    firm = replace(firm, jobs=(replace(firm.jobs[0], preemptible=False), *firm.jobs[1:]))
    dropped = at(run(firm, "fifo"), 50)
    assert (dropped.slowed_jobs, dropped.stopped_jobs) == ((), ("c", "b"))


def test_jobs_that_no_limit_allows_stop_and_come_back(make_clocked):
    """At 500 W not even one job at half clock (600 W) can run: both stop for 30 s."""
    instance = make_clocked(JOBS, budget=dip(500.0), costs=Costs(restart_s=10.0))
    schedule = run(instance, "fifo")
    # a: 50 s done, 90 + 50 = 140 s; b: 40 s done, 90 + 60 = 150 s.
    assert ends(schedule) == {"a": 140, "b": 150}
    assert at(schedule, 50).stopped_jobs == ("b", "a")
    assert at(schedule, 50).slowed_jobs == ()
    assert check(instance, schedule) == []


def test_a_job_that_must_run_is_neither_slowed_nor_stopped_before_others(make_clocked):
    """At 900 W a must go on at full clock (800 W), so b stops though it could run slowly."""
    instance = make_clocked(JOBS, budget=dip(900.0), costs=Costs(restart_s=10.0))
    firm = replace(instance.jobs[0], preemptible=False)
    instance = replace(instance, jobs=(firm, instance.jobs[1]))
    schedule = run(instance, "fifo")
    assert at(schedule, 50).slowed_jobs == ()
    assert at(schedule, 50).stopped_jobs == ("b",)
    assert ends(schedule)["a"] == 100
    assert check(instance, schedule) == []


def test_a_policy_that_minds_power_slows_jobs_by_itself(make_clocked):
    """`prices` needs no help from the driver, and never exceeds the cap."""
    instance = make_clocked(JOBS, budget=dip(1000.0), costs=Costs(restart_s=10.0))
    schedule = run(instance, "prices")
    assert all(not r.slowed_jobs and not r.stopped_jobs for r in schedule.rounds)
    assert check(instance, schedule) == []


@pytest.mark.parametrize("kept", [0, 3, 4, 5])
def test_a_killed_run_still_gives_clocks_back(make_clocked, tmp_path, kept):
    """What the driver slowed is replayed from the journal; the schedule is that of one run."""
    instance = make_clocked(JOBS, budget=dip(650.0), costs=Costs(restart_s=10.0))
    journal = tmp_path / "journal.jsonl"
    whole = run(instance, "fifo", journal=journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: 1 + kept]))
    again = run(instance, "fifo", journal=journal)
    assert again.jobs == whole.jobs
    assert [r.restored_jobs for r in again.rounds] == [r.restored_jobs for r in whole.rounds]


def standing(instance, held, **fields):
    """Return a round at 50 s; `held`, by job: node, GPUs, since when, whether it may be stopped.

    An idle node draws 400 W, asleep 10 W, and a GPU in use 200 W more, at half clock 100 W.
    """
    running = []
    for name, (node, gpus, since_s, may_stop) in held.items():
        job = Job(
            id=name,
            profile="rigid",
            submit_s=since_s,
            gpus=gpus,
            preemptible=may_stop,
            estimate=Estimate(work=1000.0),
        )
        option = Option(pool=0, gpus=gpus, span="node", rate=1.0, power_w=250.0 * gpus)
        allocation = Allocation(option=option, placement=((node, gpus),))
        running.append(
            JobState(job=job, since_s=since_s, held_s=since_s, started=True, allocation=allocation)
        )
    return Round(
        cluster=instance.cluster,
        profiles=instance.profiles,
        now_s=50.0,
        running=tuple(running),
        costs=Costs(restart_s=10.0),
        **fields,
    )


def shed(round_, *, may_sleep=False):
    """Return the relief of a round."""
    return fallback(round_, Ledger(round_.cluster), Plan(), may_sleep=may_sleep)


@pytest.mark.parametrize("policy", ["fifo", "srtf", "prices", "milp", Full()])
def test_jobs_that_must_run_go_on_above_a_cap_and_are_named(make_clocked, policy):
    """Both draw 800 W on an idle node (400 W), for 900 W: they go on, and c (1 GPU) waits."""
    # Once a has ended, at 100 s or soon after it, b alone draws 800 W.
    jobs = [*JOBS, ("c", 60, 2, 10)]
    series = StepSeries(times_s=(0.0, 50.0), values=(1200.0, 900.0))
    instance = make_clocked(jobs, budget=Budget(power_cap_w=series), costs=Costs(restart_s=10.0))
    firm = tuple(replace(job, preemptible=job.id == "c") for job in instance.jobs)
    schedule = run(replace(instance, jobs=firm), policy)
    record = at(schedule, 50)
    assert (record.slowed_jobs, record.stopped_jobs, record.power_w) == ((), (), 1200.0)
    assert record.conflicts == (
        "no plan keeps 900 W and jobs a, b, which may not be stopped: 1200 W",
    )
    assert [len(outcome.segments) for outcome in schedule.jobs[:2]] == [1, 1]
    assert schedule.jobs[2].segments[0].start_s >= 100
    assert schedule.rounds[-1].conflicts == ()
    assert check(replace(instance, jobs=firm), schedule) == []


def test_the_checker_tells_an_excess_that_must_be_from_one_that_need_not(make_clocked):
    """Above the cap of 900 W are a and b, which must go on; not b if it may stop, nor who starts.

    A job that may not be stopped is no excuse for its own start.
    """
    jobs = [*JOBS, ("c", 60, 2, 10)]
    schedule = run(make_clocked(jobs, nodes=2), "fifo")
    times_s = (0.0, 50.0)
    cap = StepSeries(times_s=times_s, values=(1600.0, 1250.0))
    low = make_clocked(jobs, nodes=2, budget=Budget(power_cap_w=cap))

    def broken(*firm):
        own = tuple(replace(job, preemptible=job.id not in firm) for job in low.jobs)
        return [v.message for v in check(replace(low, jobs=own), schedule)]

    # Two nodes idle at 800 W; a and b make 1,600 W at 50 s, and c 2,000 W at 60 s.
    assert broken() == broken("a") == ["1600 W of 1250 W at 50 s"]
    assert broken("a", "b") == broken("a", "b", "c") == ["2000 W of 1600 W at 60 s"]


def test_what_one_large_stop_leaves_is_kept(make_clocked):
    """Two idle nodes draw 800 W, and a, b and c 800, 400 and 200 W: 1,700 W bear a and some of c.

    a must run, and b loses more than c. Without c there are 2,000 W, so b must stop as well. Then a
    and c draw 1,800 W, and 1,700 W with c at half clock. Node 1 need not sleep, as c is there.
    """
    held = {"a": (0, 4, 0, False), "b": (1, 2, 10, True), "c": (1, 1, 20, True)}
    relief = shed(standing(make_clocked((), nodes=2), held, power_cap_w=1700.0))
    assert (relief.stopped, relief.slowed, relief.plan.asleep) == (("b",), ("c",), None)
    assert relief.plan.status is SolutionStatus.FALLBACK


def test_a_rack_s_cap_stops_nobody_elsewhere(make_clocked):
    """Rack r0 draws 400 W idle, and b and d add 400 and 200 W; a, in rack r1, loses least of all.

    Under 850 W it is enough to slow b (200 W less), the first of equals. 550 W do not bear b at
    half clock (600 W), but d (500 W).
    """
    instance = make_clocked((), nodes=2)
    group = replace(instance.cluster.node_groups[0], count=1)
    groups = tuple(replace(group, name=name, rack=name) for name in ("r0", "r1"))
    held = {"b": (0, 2, 10, True), "d": (0, 1, 20, True), "a": (1, 2, 45, True)}
    for cap_w, slowed, stopped in ((850.0, ("b",), ()), (550.0, ("d",), ("b",))):
        racks = (Rack(name="r0", power_cap_w=cap_w), Rack(name="r1"))
        cluster = replace(instance.cluster, node_groups=groups, racks=racks)
        relief = shed(standing(replace(instance, cluster=cluster), held))
        assert (relief.slowed, relief.stopped, relief.faults) == (slowed, stopped, ())


def test_idle_nodes_sleep_before_anybody_stops(make_clocked):
    """A draws 1,200 W beside an idle node (400 W): of 1,300 W, and node 1 asleep draws 10 W.

    A policy that puts no nodes to sleep slows a to 1,100 W, but must let node 1 sleep if a may not
    be changed. Where node 1 may stay awake (1,600 W) it does.
    """
    instance = make_clocked((), nodes=2)
    soft, firm = ({"a": (0, 4, 0, may_stop)} for may_stop in (True, False))
    relief = shed(standing(instance, soft, power_cap_w=1300.0), may_sleep=True)
    assert (relief.slowed, relief.stopped, relief.plan.asleep) == ((), (), (1,))
    relief = shed(standing(instance, soft, power_cap_w=1300.0))
    assert (relief.slowed, relief.stopped, relief.plan.asleep) == (("a",), (), None)
    relief = shed(standing(instance, firm, power_cap_w=1300.0))
    assert (relief.slowed, relief.stopped, relief.plan.asleep) == ((), (), (1,))
    assert relief.faults == ("no plan keeps 1300 W and all nodes awake: node 1 put to sleep",)


def test_nodes_sleep_where_they_must_and_nowhere_else(make_clocked):
    """Beside a (1,200 W) b (1,000 W) must stop under 1,700 W; then its node may idle (400 W).

    In a rack capped at 1,300 W a draws 1,600 W beside an idle node, which sleeps, while a third
    node, elsewhere, idles on.
    """
    held = {"a": (0, 4, 0, False), "b": (1, 3, 10, True)}
    instance = make_clocked((), nodes=2)
    relief = shed(standing(instance, held, power_cap_w=1700.0), may_sleep=True)
    assert (relief.stopped, relief.plan.asleep) == (("b",), None)
    group = instance.cluster.node_groups[0]
    groups = (
        replace(group, name="r0", rack="r0"),
        replace(group, name="r1", rack="r1", count=1),
    )
    racks = (Rack(name="r0", power_cap_w=1300.0), Rack(name="r1"))
    cluster = replace(instance.cluster, node_groups=groups, racks=racks)
    held = {"a": (0, 4, 0, True)}
    relief = shed(standing(replace(instance, cluster=cluster), held), may_sleep=True)
    assert (relief.slowed, relief.stopped, relief.plan.asleep) == ((), (), (1,))


def test_what_not_even_an_empty_plan_keeps_is_refused(make_clocked):
    """100 W do not bear the awake node (400 W), but one asleep; 5 W do not bear that (10 W)."""
    instance = make_clocked(JOBS)
    round_ = Round(cluster=instance.cluster, profiles=instance.profiles, power_cap_w=100.0)
    for may_sleep in (True, False):
        relief = shed(round_, may_sleep=may_sleep)
        assert relief.plan.asleep == (0,)
        assert bool(relief.faults) is not may_sleep
    with pytest.raises(RondaError, match="draws 10 W of 5 W"):
        shed(replace(round_, power_cap_w=5.0))


def test_an_energy_budget_that_runs_out_slows_jobs_too(make_clocked):
    """A burst on credit: when it is used up, the jobs go on as fast as the accrual bears."""
    energy = EnergyBudget(joules=1000.0 * 400, horizon_s=400.0, window_s=20.0, credit_j=8000.0)
    instance = make_clocked(JOBS, budget=Budget(energy=energy))
    schedule = run(instance, Full())
    assert any(r.slowed_jobs for r in schedule.rounds)
    assert check(instance, schedule) == []


def test_jobs_that_must_run_go_on_when_the_energy_is_spent(make_clocked):
    """They draw 1,200 W of 1,000 W: 8,000 J are gone after 40 s with both, from 10 s on.

    c, which may be stopped, does not start before they have ended. What is owed then, it pays back.
    """
    energy = EnergyBudget(joules=1000.0 * 400, horizon_s=400.0, window_s=20.0, credit_j=4000.0)
    made = make_clocked([*JOBS, ("c", 60, 2, 10)], budget=Budget(energy=energy), nodes=1)
    firm = tuple(replace(job, preemptible=job.id == "c") for job in made.jobs)
    made = replace(made, jobs=firm)
    schedule = run(made, Full())
    assert ends(schedule)["a"] == 100
    assert any("J more" in said for r in schedule.rounds for said in r.conflicts)
    assert schedule.jobs[2].segments[0].start_s >= 100
    assert check(made, schedule) == []
    soft = replace(made, jobs=tuple(replace(job, preemptible=True) for job in firm))
    assert [v.code for v in check(soft, schedule)] == ["energy"]


def test_arrays_are_stopped_whole():
    """Of 500 W 350 W are left: of a lone job and an array the one goes that has run for less.

    The host draws 100 W, two GPUs 50 W each idle and 150 W more each while busy. The array has run
    for 10 s, the job for 20 s or 5 s; at half clock it would draw 70 W more than idle.
    """
    for since_s, stopped in ((0.0, ("j0", "j1")), (15.0, ("j2",))):
        round_ = opening(arrays.instance([50.0] * 3, classes=["c", "c", None]))
        held = arrays.array(round_, ["j0", "j1"], "packed", 0, "a")
        held |= arrays.array(round_, ["j2"], "packed", 0, "b")
        running = tuple(
            replace(s, allocation=held[s.job.id], held_s=10.0, started=True) for s in round_.waiting
        )
        running = (*running[:2], replace(running[2], held_s=since_s))
        asked = replace(round_, running=running, waiting=(), now_s=20.0, power_cap_w=350.0)
        relief = fallback(asked, Ledger(asked.cluster), Plan(), may_sleep=False)
        assert check(asked, relief.plan) == []
        assert tuple(relief.stopped) == stopped


def test_an_array_of_which_one_may_not_be_stopped_is_stopped_last():
    """Its fellow would save nothing: the lone job goes, though it has run for longer."""
    round_ = opening(arrays.instance([50.0] * 3, classes=["c", "c", None]))
    held = arrays.array(round_, ["j0", "j1"], "packed", 0, "a")
    held |= arrays.array(round_, ["j2"], "packed", 0, "b")
    running = tuple(
        replace(
            s,
            job=replace(s.job, preemptible=s.job.id != "j0"),
            allocation=held[s.job.id],
            held_s=0.0 if s.job.id == "j2" else 10.0,
        )
        for s in round_.waiting
    )
    asked = replace(round_, running=running, waiting=(), now_s=20.0, power_cap_w=350.0)
    relief = fallback(asked, Ledger(asked.cluster), Plan(), may_sleep=False)
    assert tuple(relief.stopped) == ("j2",)
    assert check(asked, relief.plan) == []


def opening(made):
    """Return the first round of an instance."""
    state = ClusterState(made)
    state.advance(0.0)
    return state.snapshot(60.0)


def test_a_run_ends_where_no_plan_keeps_a_rule(make_clocked):
    """Three jobs are to run where there is one."""

    def three(round, table):
        return Limit(np.ones(len(table)), ">=", 3)

    made = policy("prices", extra=[three])
    with pytest.raises(RondaError, match=r"at 0 s no plan is valid: rule\[three\]"):
        run(make_clocked(JOBS), made)
