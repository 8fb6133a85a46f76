"""Fused probes of the policy `sweep`: new trials share GPUs, and leave them as they fall behind."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from arrays import array
from arrays import instance as jobs_of
from ronda.horizon.driver import run
from ronda.horizon.state import ClusterState
from ronda.instances import generate
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.instance import Cadence
from ronda.instances.job import JobState, Truth
from ronda.instances.learning import Sweep, SweepState, TrainingLog
from ronda.instances.models.sharing import balanced
from ronda.instances.outcome.sweep_results import searched
from ronda.instances.profile import Parametric
from ronda.instances.rules.validate import validate
from ronda.solvers.greedy.groups import groups
from ronda.solvers.registry import policy
from ronda.systems.hermes.probes import arrays, parted
from ronda.systems.hermes.trials import trials_of

W0, REPORTS = 60.0, 6
FALL = 0.1


def search(trials, *, gpus=1, restart_s=0.0, fusible=True, **fields):
    """Return a search of fusible trials, the last of which has the lowest losses throughout."""
    made = jobs_of([W0 * REPORTS] * trials, gpus=gpus, classes=["c" if fusible else None] * trials)
    jobs = []
    for k, job in enumerate(made.jobs):
        losses = tuple(1.0 - FALL * r * (k + 1) / trials for r in range(REPORTS + 1))
        truth = Truth(work=W0 * REPORTS, learning=losses)
        jobs.append(replace(job, epoch=W0, sweep="s", truth=truth))
    costs = replace(made.costs, start_s=0.0, restart_s=restart_s)
    sweeps, cadence = {"s": Sweep(reports=REPORTS)}, Cadence(on_report=True)
    return validate(
        replace(made, jobs=tuple(jobs), sweeps=sweeps, costs=costs, cadence=cadence, **fields)
    )


def ran(instance, spec="sweep", **options):
    """Return the schedule of a policy, none of whose plans was refused."""
    schedule = run(instance, spec, **options)
    assert check(instance, schedule) == []
    assert [r.violations for r in schedule.rounds if r.violations] == []
    return schedule


def widths(schedule):
    """Return the widths of each trial's segments, those that run on being one."""
    found = []
    for outcome in schedule.jobs:
        each = [s.option.width for s in outcome.segments]
        found.append([k for k, before in zip(each, [None, *each], strict=False) if k != before])
    return found


def test_the_best_of_an_array_goes_on_alone_and_pauses_never():
    """Four trials on one GPU: 4, 2, 1 share it, for 60 s x 2, 60 s x 1.5, and the rest alone."""
    made = search(4, restart_s=30.0)
    schedule = ran(made)
    best = schedule.jobs[3]
    ends = [s.end_s for s in best.segments if s.option.width > 1]
    assert (widths(schedule)[3], ends) == ([4, 2, 1], [120.0, 210.0])
    assert all(s.resume_s == s.start_s for s in best.segments)
    assert best.end_s == pytest.approx(210 + 4 * W0)
    assert widths(schedule)[2][:2] == [4, 2]
    assert [first for first, *_ in widths(schedule)[:2]] == [4, 4]
    found = searched(made, schedule, "s")
    assert found.gpu_s == pytest.approx(found.time_s)  # the one GPU is held throughout


def test_arrays_are_halved_before_others_begin():
    """Twelve trials in two arrays: 6, 3, 2 share the GPU for 60 s x 2.5, 1.75, 1.5; then 6 more."""
    schedule = ran(search(12))
    begins = sorted(o.segments[0].start_s for o in schedule.jobs)
    assert begins == [0.0] * 6 + [pytest.approx(60 * (2.5 + 1.75 + 1.5))] * 6


def test_an_array_only_shrinks_when_it_has_reported():
    """Decisions between two reports change nothing."""
    made = search(4)
    often = replace(made, cadence=Cadence(on_report=True, period_s=7.0))
    segments = [
        [(s.start_s, s.end_s) for s in ran(each).jobs[3].segments] for each in (made, often)
    ]
    assert segments[0] == segments[1]


@pytest.mark.parametrize("fusible", [True, False])
def test_without_fusion_every_decision_is_the_same(fusible):
    """Trials that cannot be fused, and those that may not, are probed one by one."""
    plain = ran(search(5, gpus=2, fusible=False), "sweep(fuse=false)")
    other = ran(search(5, gpus=2, fusible=fusible), f"sweep(fuse={not fusible})".lower())
    assert [o.segments for o in other.jobs] == [o.segments for o in plain.jobs]


def opening(made):
    """Return the first round of an instance in which all jobs are there."""
    state = ClusterState(made)
    state.advance(0.0)
    return state.snapshot(60.0)


@given(trials=st.integers(1, 30), gpus=st.integers(1, 6))
def test_arrays_are_as_many_as_report_soonest(trials, gpus):
    """Of all numbers of even arrays that memory holds; one by one if that is as soon."""
    (group,) = groups(opening(jobs_of([1.0] * trials, gpus=gpus)))
    (home,) = group.homes.values()

    def soon_s(number):
        sizes = [len(chunk) for chunk in balanced(range(trials), number)]
        if sizes[0] > 7:
            return float("inf")
        waves = [sizes[at : at + gpus] for at in range(0, number, gpus)]
        return len(waves) / home.ways[sizes[0] - 1][1]

    times = {number: soon_s(number) for number in range(1, trials + 1)}
    chosen = arrays(home, trials, gpus)
    assert times[chosen] == min(times.values())
    assert chosen == max(n for n, time_s in times.items() if time_s == times[chosen])


def test_few_trials_have_a_gpu_each():
    """As many trials as GPUs share none."""
    assert max(map(max, widths(ran(search(3, gpus=3))))) == 1


def limit(kind, gpus):
    """Return a budget: each host draws 100 W, each GPU 50 W, and 150 W more while it is busy."""
    idle_w = 100.0 + 50.0 * gpus
    if kind == "power":
        values = idle_w + 150.0 * gpus, idle_w + 150.0
        return Budget(power_cap_w=StepSeries(times_s=(0.0, 200.0), values=values))
    watts = idle_w + 50.0 * gpus
    return Budget(energy=EnergyBudget(joules=watts * 3600, horizon_s=3600.0, window_s=900.0))


@settings(max_examples=10, deadline=None)
@given(
    trials=st.integers(2, 12),
    gpus=st.integers(1, 3),
    restart_s=st.sampled_from([0.0, 25.0]),
    kind=st.sampled_from([None, "power", "energy"]),
    spec=st.sampled_from(["sweep", "sweep(beside=1)", "sweep(hopeless=0.3)"]),
)
def test_probes_keep_memory_lock_step_and_limits(trials, gpus, restart_s, kind, spec):
    """The checker finds nothing in any plan, and nothing in the schedule; arrays only shrink."""
    fields = {} if kind is None else {"budget": limit(kind, gpus)}
    schedule = ran(search(trials, gpus=gpus, restart_s=restart_s, **fields), spec)
    if trials > gpus:
        assert max(map(max, widths(schedule))) > 1
    for each in widths(schedule):
        shared = [k for k in each if k > 1]
        assert all(a > b for a, b in pairwise(shared))


def in_an_array(firm=False, now_s=0.0):
    """Return a round in which four trials share a GPU that have reported; j0 may not be stopped."""
    round_ = opening(search(4))
    held = array(round_, ["j0", "j1", "j2", "j3"], "fused", 0, "a")
    running = []
    for k, state in enumerate(round_.waiting):
        job = replace(state.job, preemptible=not (firm and k == 0))
        loss = 1.0 - 0.1 * k
        log = TrainingLog(epochs=1, initial_loss=1.0, loss=loss, losses=(loss,))
        running.append(replace(state, job=job, allocation=held[job.id], log=log, done=W0))
    return replace(round_, running=tuple(running), waiting=(), now_s=now_s)


@pytest.mark.parametrize("firm", [True, False])
def test_an_array_with_a_trial_that_may_not_be_stopped_stays_whole(firm):
    """All have reported, and another job waits; else half of them leave."""
    asked = in_an_array(firm)
    if firm:
        other = replace(asked.running[0].job, id="other", sweep=None, preemptible=True)
        asked = replace(asked, waiting=(JobState(job=other, since_s=0.0),))
    plan = policy("sweep").plan(asked, deadline=Deadline(), seed=0)
    assert check(asked, plan) == []
    assert plan.allocations.keys() == ({"j0", "j1", "j2", "j3"} if firm else {"j2", "j3"})


def test_an_array_that_holds_another_job_is_no_probe():
    """It is kept whole, and none of its trials is given up, though the sweep's time is over."""
    asked = in_an_array(now_s=10.0)
    first, *others = asked.running
    plain = replace(first, job=replace(first.job, sweep=None), log=None)
    over = {"s": SweepState(sweep=Sweep(reports=REPORTS, deadline_s=5.0))}
    asked = replace(asked, running=(plain, *others), sweeps=over)
    plan = policy("sweep").plan(asked, deadline=Deadline(), seed=0)
    assert check(asked, plan) == []
    assert plan.allocations == asked.held
    assert plan.discarded == ()


def test_an_array_stays_on_its_gpu_where_trials_grow():
    """Nobody waits, and a trial is nearly twice as fast on two GPUs: only the lone one grows."""
    fast = Parametric(alpha_c_s=0.01, beta_c_s=0.01)
    made = search(3, gpus=2)
    net = replace(made.profiles["net"], base_batch=64, throughput={"A": fast}, memory=None)
    group = replace(made.cluster.node_groups[0], count=2)
    jobs = tuple(replace(job, min_gpus=1, max_gpus=2) for job in made.jobs)
    cluster = replace(made.cluster, node_groups=(group,))
    asked = opening(replace(made, profiles={"net": net}, cluster=cluster, jobs=jobs))
    held = array(asked, ["j0", "j1"], "packed", 1, "a") | array(asked, ["j2"], "packed", 0, "b")
    running = tuple(replace(s, allocation=held[s.job.id], started=True) for s in asked.waiting)
    asked = replace(asked, running=running, waiting=())
    plan = policy("sweep").plan(asked, deadline=Deadline(), seed=0)
    assert check(asked, plan) == []
    assert {i: plan.allocations[i] for i in ("j0", "j1")} == {i: held[i] for i in ("j0", "j1")}
    assert plan.allocations["j2"].option.gpus == 2


def test_who_leaves_an_array_keeps_what_has_been_done():
    """Ten seconds after the report each has done 5 s more of work, at half its speed alone."""
    asked = in_an_array(now_s=10.0)
    probes = parted(asked, list(reversed(trials_of(asked))), None)
    assert [t.state.remaining_at(10.0) for t in probes.order] == [W0 * (REPORTS - 1) - 5.0] * 3
    assert [t.state.allocation is None for t in probes.order] == [False, True, True]


def test_a_run_goes_on_from_its_journal(tmp_path):
    """Cut after any decision: what arrays have reported is known from the plans."""
    made, journal = search(5, restart_s=10.0), tmp_path / "journal.jsonl"
    whole = ran(made, journal=journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    for count in range(1, len(lines), 3):
        journal.write_bytes(b"".join(lines[:count]))
        assert run(made, "sweep", journal=journal).jobs == whole.jobs


@pytest.mark.parametrize("name", generate.SHARED)
def test_generated_trials_share_gpus_as_was_measured(name):
    """Alone they are as fast as others; together all have reported sooner."""
    like = {"reports": 4, "good": 0.0}
    plain = generate.sweep(12, 2, 0, generate.Trials(**like))
    made = validate(generate.sweep(12, 2, 0, generate.Trials(fusible=name, **like)))
    alone = ran(made, "sweep(fuse=false)")
    assert [o.end_s for o in alone.jobs] == [o.end_s for o in ran(plain).jobs]
    first = [max(o.segments[0].end_s for o in s.jobs) for s in (alone, ran(made))]
    assert first[1] < first[0]
    with pytest.raises(InputError, match="fusible"):
        generate.sweep(2, like=generate.Trials(fusible="pointnet"))
