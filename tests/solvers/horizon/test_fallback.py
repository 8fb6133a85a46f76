"""A cap that drops: jobs are slowed, then stopped in order of least loss, and the record says so.

On one node of 4 GPUs at 50 W idle, host 200 W, jobs a (from 0 s) and b (from 10 s) run on 2 GPUs
each for 100 s: 400 W + 2 x 400 W = 1,200 W. A restart takes 10 s.
"""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from msgspec.structs import replace

from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.check.answer import Ledger, check
from ronda.instances.errors import RondaError
from ronda.instances.job import Costs
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.horizon.driver import run
from ronda.solvers.horizon.fallback import fallback
from ronda.solvers.policies.rigid.fifo import Fifo

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


def test_nodes_sleep_only_for_policies_that_can_wake_them(make_clocked):
    """100 W do not bear the awake node (400 W): it sleeps at 10 W, or there is no plan."""
    instance = make_clocked(JOBS)
    round_ = Round(
        cluster=instance.cluster, profiles=instance.profiles, power_cap_w=100.0, waiting=()
    )
    relief = fallback(round_, Ledger(instance.cluster), Plan(), may_sleep=True)
    assert relief.plan.asleep == (0,)
    with pytest.raises(RondaError, match="draws 400 W of 100 W"):
        fallback(round_, Ledger(instance.cluster), Plan(), may_sleep=False)


def test_an_energy_budget_that_runs_out_slows_jobs_too(make_clocked):
    """A burst on credit: when it is used up, the jobs go on as fast as the accrual bears."""
    energy = EnergyBudget(joules=1000.0 * 400, horizon_s=400.0, window_s=20.0, credit_j=8000.0)
    instance = make_clocked(JOBS, budget=Budget(energy=energy))
    schedule = run(instance, Full())
    assert any(r.slowed_jobs for r in schedule.rounds)
    assert check(instance, schedule) == []
