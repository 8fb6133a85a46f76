"""The driver: order of events, costs, energy, budgets, fallback, resumption."""

from dataclasses import dataclass
from typing import ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.horizon.driver import run
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError, RondaError
from ronda.instances.files.packaged import load
from ronda.instances.instance import Cadence
from ronda.instances.job import Allocation, Costs
from ronda.instances.outcome.metrics import summarise
from ronda.instances.plan import Plan, SolutionStatus, SolveRecord
from ronda.solvers.contract import Capability


def ends(schedule):
    """Return completion times by job."""
    return {job.id: job.end_s for job in schedule.jobs}


def test_fifo_blocks_behind_the_first_job_that_has_no_room(make_instance):
    """B needs all 4 GPUs and waits for a; c would fit beside a but stands behind b."""
    instance = make_instance([("a", 0, 2, 100), ("b", 10, 4, 50), ("c", 20, 2, 10)])
    schedule = run(instance, "fifo")
    # a 0-100, b 100-150, c 150-160
    assert ends(schedule) == {"a": 100, "b": 150, "c": 160}
    assert check(instance, schedule) == []


def test_sjf_starts_the_shortest_waiting_job_first(make_instance):
    """With a running until 100, c (10 s) goes before b (50 s)."""
    instance = make_instance([("a", 0, 4, 100), ("b", 10, 4, 50), ("c", 20, 4, 10)])
    assert ends(run(instance, "sjf")) == {"a": 100, "c": 110, "b": 160}


def test_srtf_stops_a_longer_job_and_charges_its_restart(make_instance):
    """B (20 s) stops a at 10; a resumes at 30, pauses 5 s and still has 90 s to do."""
    instance = make_instance([("a", 0, 4, 100), ("b", 10, 4, 20)], costs=Costs(restart_s=5.0))
    schedule = run(instance, "srtf(teardown_s=0)")
    assert ends(schedule) == {"b": 30, "a": 125}
    assert check(instance, schedule) == []
    assert summarise(instance, schedule)["preemptions"] == 1


def test_energy_is_the_integral_of_power_by_hand(make_instance):
    """One node, one job of 2 GPUs for 100 s after a wait of 50 s for its submission."""
    instance = make_instance([("a", 50, 2, 100)], costs=Costs(start_s=10.0))
    energy = run(instance, "fifo").energy
    # 160 s in all: host 200 W; 4 idle GPUs at 50 W but for the 2 held from 50 to 160;
    # held: 10 s paused at 2 x 50 W, then 100 s busy at 2 x 250 W.
    assert energy.host_j == pytest.approx(200 * 160)
    assert energy.idle_gpu_j == pytest.approx(50 * (4 * 160 - 2 * 110))
    assert energy.paused_j == pytest.approx(2 * 50 * 10)
    assert energy.busy_j == pytest.approx(2 * 250 * 100)


def test_power_cap_delays_a_start(make_instance):
    """Idle draws 400 W, each job adds 400 W: under 900 W only one runs at a time."""
    budget = Budget(power_cap_w=StepSeries(times_s=(0.0,), values=(900.0,)))
    instance = make_instance([("a", 0, 2, 100), ("b", 0, 2, 100)], budget=budget)
    schedule = run(instance, "fifo")
    assert ends(schedule) == {"a": 100, "b": 200}
    assert check(instance, schedule) == []


def test_power_cap_that_drops_stops_what_runs_and_the_record_says_so(make_instance):
    """At 50 s the cap falls to 700 W, below the 800 W of the running job; at 80 s it is back."""
    budget = Budget(power_cap_w=StepSeries(times_s=(0.0, 50.0, 80.0), values=(900.0, 700.0, 900.0)))
    instance = make_instance([("a", 0, 2, 100)], budget=budget)
    schedule = run(instance, "fifo")
    assert ends(schedule) == {"a": 130}
    dropped = next(r for r in schedule.rounds if r.now_s == 50)
    assert dropped.status is SolutionStatus.FALLBACK
    assert dropped.violations
    assert check(instance, schedule) == []


def test_job_that_no_budget_can_ever_run_is_reported(make_instance):
    """All of the 400 W that accrue go to the idle node, which does not sleep: nothing is saved."""
    energy = EnergyBudget(joules=400.0 * 3600, horizon_s=3600.0)
    instance = make_instance([("a", 0, 2, 100)], budget=Budget(energy=energy))
    group = msgspec.structs.replace(instance.cluster.node_groups[0], sleep_w=400.0)
    cluster = msgspec.structs.replace(instance.cluster, node_groups=(group,))
    instance = msgspec.structs.replace(instance, cluster=cluster)
    with pytest.raises(RondaError, match="'a'"):
        run(instance, "fifo")


@pytest.mark.parametrize(
    ("work", "costs"), [(1e19, Costs()), (100, Costs(start_s=1e19))], ids=["work", "pause"]
)
def test_a_run_that_outlives_the_digits_of_its_clock_ends_with_an_error(make_instance, work, costs):
    """At 1e19 s the next float is 2,048 s later: b would do its 50 s of work in no time."""
    instance = make_instance([("a", 0, 4, work), ("b", 10, 4, 50)], costs=costs)
    with pytest.raises(RondaError, match="beyond"):
        run(instance, "fifo")


def test_a_job_that_never_ends_is_not_asked_about_for_ever(make_instance):
    """Its 1e13 s would be 10 million million rounds of a second each."""
    instance = make_instance([("a", 0, 4, 1e13)])
    with pytest.raises(RondaError, match="none ever ends"):
        run(instance, "fifo", cadence=Cadence(period_s=1.0))


@dataclass(frozen=True)
class Waits:
    """Starts nothing, and says why."""

    says: str = ""
    name: ClassVar[str] = "waits"
    capabilities: ClassVar[Capability] = Capability.NONE

    def plan(self, round, *, deadline, seed, initial=None):
        """Start nothing."""
        return Plan(policy=self.name, allocations={}, record=SolveRecord(message=self.says))


@pytest.mark.parametrize(
    ("cap_w", "says", "why"),
    [
        (None, "", "no limit on power, energy or of its own keeps"),
        (None, "not today", "the last decision says: not today"),
        (9e9, "not today", "the last decision says: not today"),
        (9e9, "", "may be too large for the power or energy budget"),
    ],
)
def test_nobody_guesses_why_a_job_waits_for_ever(make_instance, cap_w, says, why):
    """A budget is blamed only where there is one, and the policy says nothing."""
    cap = None if cap_w is None else StepSeries(times_s=(0.0,), values=(cap_w,))
    instance = make_instance([("a", 0, 1, 5)], budget=Budget(power_cap_w=cap))
    with pytest.raises(RondaError, match=why):
        run(instance, Waits(says))


def test_cadence_by_period_only_starts_jobs_at_ticks(make_instance):
    """A job submitted at 10 s starts at the tick at 60 s."""
    instance = make_instance([("a", 10, 1, 5)], cadence=Cadence(period_s=60.0, on_event=False))
    assert ends(run(instance, "fifo")) == {"a": 65}


def test_cadence_without_events_or_period_is_refused(make_instance):
    """Nothing would ever be decided."""
    instance = make_instance([("a", 0, 1, 5)])
    with pytest.raises(InputError, match="cadence"):
        run(instance, "fifo", cadence=Cadence(on_event=False))


@dataclass(frozen=True)
class Sleeper:
    """Puts the second node to sleep until a job needs it."""

    name: ClassVar[str] = "sleeper"
    capabilities: ClassVar[Capability] = Capability.NONE

    def plan(self, round, *, deadline, seed, initial=None):
        """Job number k goes to node k."""
        from ronda.formulations.options.application import requested_options

        held = {s.job.id: s.allocation for s in round.running}
        for state in round.waiting:
            node = int(state.job.id[1:])
            option = requested_options(round, state)[0]
            held[state.job.id] = Allocation(option=option, placement=((node, state.job.gpus),))
        used = {node for a in held.values() for node, _ in a.placement}
        return Plan(policy="sleeper", allocations=held, asleep=tuple({0, 1} - used))


def test_sleeping_node_wakes_late_and_saves_energy(make_instance):
    """Node 1 sleeps 0-30 s (380 W less... 400 - 10), wakes for 100 s, then runs its job."""
    instance = make_instance([("j0", 0, 4, 300), ("j1", 30, 4, 50)], nodes=2)
    schedule = run(instance, Sleeper())
    # j1 is ordered at 30 s, its node is up at 130 s, it ends at 180 s; node 1 sleeps again
    # from 180 to 300 s.
    assert ends(schedule) == {"j0": 300, "j1": 180}
    assert schedule.sleeps == ((1, 0.0, 30.0), (1, 180.0, 300.0))
    assert schedule.energy.sleep_j == pytest.approx(10 * 150)
    assert schedule.energy.host_j == pytest.approx(200 * (300 + 150))
    assert schedule.energy.paused_j == pytest.approx(4 * 50 * 100)
    assert check(instance, schedule) == []


@dataclass(frozen=True)
class Greedy:
    """Proposes more than there is: all waiting jobs on node 0."""

    name: ClassVar[str] = "greedy-liar"
    capabilities: ClassVar[Capability] = Capability.NONE

    def plan(self, round, *, deadline, seed, initial=None):
        """Fill node 0 without looking, but one job at a time if it is alone."""
        from ronda.formulations.options.application import requested_options

        held = {s.job.id: s.allocation for s in round.running}
        for state in round.waiting:
            option = requested_options(round, state)[0]
            held[state.job.id] = Allocation(option=option, placement=((0, state.job.gpus),))
        return Plan(policy=self.name, allocations=held)


def test_plan_with_a_violation_never_runs(make_instance):
    """B is proposed on GPUs that a holds: what runs keeps running, and b starts when a ends."""
    instance = make_instance([("a", 0, 4, 100), ("b", 10, 4, 50)])
    schedule = run(instance, Greedy())
    assert ends(schedule) == {"a": 100, "b": 150}
    assert [bool(r.violations) for r in schedule.rounds] == [False, True, False, False][
        : len(schedule.rounds)
    ]
    assert check(instance, schedule) == []


@dataclass(frozen=True)
class Killed:
    """FIFO that dies after some rounds, as a kill would."""

    backfill: str = "none"
    rounds: ClassVar[int] = 50
    name: ClassVar[str] = "fifo"
    capabilities: ClassVar[Capability] = Capability.NONE
    calls: ClassVar[list[int]] = []

    def plan(self, round, *, deadline, seed, initial=None):
        """Decide, or die."""
        from ronda.solvers.policies.rigid.queues import Fifo

        self.calls.append(1)
        if len(self.calls) > self.rounds:
            raise KeyboardInterrupt
        return Fifo().plan(round, deadline=deadline, seed=seed, initial=initial)


def plain(schedule):
    """Return a schedule without what depends on the clock of the machine."""
    rounds = tuple(msgspec.structs.replace(r, solve_s=0.0, overhead_s=0.0) for r in schedule.rounds)
    return msgspec.structs.replace(schedule, rounds=rounds, config={})


@pytest.mark.parametrize("cut", [0, 7, 40])
def test_killed_run_resumes_to_the_same_schedule(tmp_path, cut):
    """Also when the last line of the journal was cut in half."""
    instance = load("venus-vcvly")
    instance = msgspec.structs.replace(instance, jobs=instance.jobs[:60])
    whole = run(instance, "fifo")
    Killed.calls.clear()
    journal = tmp_path / "journal.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(instance, Killed(), journal=journal)
    text = journal.read_bytes()
    journal.write_bytes(text[: len(text) - cut])
    assert plain(run(instance, "fifo", journal=journal)) == plain(whole)


def test_journal_of_another_run_is_refused(make_instance, tmp_path):
    """Another seed is another run; the journal stays as it was."""
    instance = make_instance([("a", 0, 1, 5)])
    journal = tmp_path / "journal.jsonl"
    run(instance, "fifo", journal=journal)
    before = journal.read_bytes()
    with pytest.raises(InputError, match="seed"):
        run(instance, "fifo", seed=1, journal=journal)
    assert journal.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "policy", "jct", "queue", "queued"),
    [
        ("venus-vcvgl", "fifo", 18497.01, 13891.12, 933),
        ("venus-vcvgl", "sjf", 5302.68, 696.79, 593),
        ("venus-vcvgl", "srtf", 5056.42, 433.70, 389),
        ("venus-vcvgl", "qssf(by=gpus)", 4817.95, 212.06, 157),
        ("venus-vcvly", "fifo", 9667.02, 360.43, 18),
        ("venus-vcvly", "srtf", 9665.52, 354.22, 22),
        ("venus-vcvly", "qssf", 9667.02, 360.43, 18),
    ],
)
def test_published_simulator_results_are_met_to_the_digit(name, policy, jct, queue, queued):
    """Golden results of the Helios artifact's own simulator on the same jobs."""
    instance = load(name)
    schedule = run(instance, policy)
    found = summarise(instance, schedule)
    assert round(found["mean_jct_s"], 2) == jct
    assert round(found["mean_queue_s"], 2) == queue
    assert found["queued_jobs"] == queued
    assert check(instance, schedule) == []


@pytest.mark.parametrize(
    ("policy", "jct", "queue"),
    [
        ("qssf", 4822.0, 216.1),
        ("fifo(backfill=free)", 4826.4, 220.5),
        ("sjf(backfill=free)", 4813.1, 207.2),
    ],
)
def test_orders_of_the_published_queue_are_met(policy, jct, queue):
    """What an event-driven clone of the Helios artifact's simulator finds on venus-vcvgl."""
    instance = load("venus-vcvgl")
    found = summarise(instance, run(instance, policy))
    assert round(found["mean_jct_s"], 1) == jct
    assert round(found["mean_queue_s"], 1) == queue


@settings(max_examples=20, deadline=None)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 300), st.integers(1, 8), st.integers(1, 200)),
        min_size=1,
        max_size=12,
    ),
    policy=st.sampled_from(["fifo", "sjf", "srtf"]),
)
def test_any_schedule_passes_the_independent_checker(make_instance, jobs, policy):
    """Whatever arrives: every job ends, nothing is over capacity, the energy closes."""
    rows = [(f"j{k}", s, g, d) for k, (s, g, d) in enumerate(sorted(jobs))]
    instance = make_instance(rows, nodes=2, costs=Costs(start_s=3.0, restart_s=7.0))
    schedule = run(instance, policy)
    assert check(instance, schedule) == []
    assert all(job.end_s is not None for job in schedule.jobs)


@pytest.mark.parametrize("period_s", [0.1, 0.7, 1 / 3, 60.1, 7e-3])
def test_a_run_by_periods_alone_decides_at_each_of_them(make_instance, period_s):
    """One GPU, two jobs of five periods each: decisions at 0, p, 2 p, … until both have ended."""
    jobs = [(name, 0.0, 1, 5 * period_s) for name in "ab"]
    cadence = Cadence(period_s=period_s, on_event=False)
    schedule = run(make_instance(jobs, gpus_per_node=1, cadence=cadence), "fifo")
    assert [r.now_s for r in schedule.rounds] == [k * period_s for k in range(len(schedule.rounds))]
    assert len(schedule.jobs[1].segments) == 1
