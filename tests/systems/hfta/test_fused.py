"""Policies that let jobs share GPUs: HFHT's rule, and classes planned as elastic jobs."""

from itertools import combinations_with_replacement, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from arrays import NET, array, instance, standing
from ronda.horizon.driver import run
from ronda.horizon.state import ClusterState
from ronda.instances import clock as clocks
from ronda.instances.budget import Budget, StepSeries
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Costs, Estimate, Job, JobState
from ronda.instances.models.sharing import fastest_mode
from ronda.instances.outcome.metrics import job_figures, summarise
from ronda.instances.plan import StopReason
from ronda.instances.profile import AffineTime, Memory, PowerCurve, Profile, Sharing, Tabular
from ronda.instances.round import Round
from ronda.solvers.greedy.policy import GOOD
from ronda.solvers.greedy.regroup import fastest_cut, regroup
from ronda.solvers.registry import policy
from ronda.systems.hfta.jointly import Jointly
from ronda.testing import sharing

GPU = GpuType(name="A", memory_gib=16, idle_w=50)
BASES = ("prices", "evolve")


def opening(made):
    """Return the first round of an instance in which all jobs are there."""
    state = ClusterState(made)
    state.advance(0.0)
    return state.snapshot(60.0)


def planned(round, spec, seed=0):
    """Return a policy's plan, which is in order."""
    plan = policy(spec).plan(round, deadline=Deadline(None), seed=seed)
    assert check(round, plan) == []
    return plan


def widths(plan):
    """Return the widths of a plan's arrays, the widest first."""
    found = {}
    for job_id, held in plan.allocations.items():
        found.setdefault(held.array or job_id, []).append(held.option.mode)
    return sorted((len(modes) for modes in found.values()), reverse=True)


def test_hfht_cuts_full_arrays_in_order():
    """Of nine jobs of a class seven fit the GPU; the rest is the array of the next one."""
    plan = planned(opening(instance([5.0] * 9, gpus=2)), "hfht")
    assert widths(plan) == [7, 2]
    assert {a.option.mode for a in plan.allocations.values()} == {"fused"}
    first = {i for i, a in plan.allocations.items() if a.option.width == 7}
    assert first == {f"j{k}" for k in range(7)}


def test_hfht_is_first_in_first_out_beside_other_jobs():
    """On one GPU the job of no class that came first goes first, and blocks."""
    made = instance([5.0] * 4, gpus=1, classes=[None, "c", "c", "c"])
    assert list(planned(opening(made), "hfht").allocations) == ["j0"]


def test_hfht_leaves_arrays_alone():
    """Nobody joins what runs: the third job waits until both of the first array are through."""
    made = instance([10, 10, 10], gpus=1, submit_s=[0, 0, 1], costs=Costs())
    schedule = run(made, "hfht")
    assert check(made, schedule) == []
    assert [o.end_s for o in schedule.jobs] == pytest.approx([15, 15, 25])


def best_speed(jobs, gpus):
    """Return the greatest total speed of `jobs` jobs on at most `gpus` GPUs, by all cuts."""
    speed = {0: 0.0}
    for k in range(1, 8):
        way = fastest_mode(NET, GPU, k, 1.0)
        speed[k] = k * way[1]
    return max(
        sum(speed[k] for k in cut)
        for cut in combinations_with_replacement(range(min(jobs, 7) + 1), gpus)
        if sum(cut) <= jobs
    )


@pytest.mark.parametrize("base", ["prices", "milp"])
@pytest.mark.parametrize("gpus", [1, 2, 3])
@pytest.mark.parametrize("jobs", [2, 5, 8, 11])
def test_a_class_runs_as_fast_as_any_cut_could(base, gpus, jobs):
    """The expansion reaches the fastest of all cuts of a class into arrays on the GPUs it gets."""
    made = instance([1000.0] * jobs, gpus=gpus)
    plan = planned(opening(made), f"{base}+fused")
    used = len(widths(plan))
    total = sum(a.option.rate for a in plan.allocations.values())
    assert used == min(gpus, jobs)
    assert total == pytest.approx(best_speed(jobs, used))


@pytest.mark.parametrize("base", BASES)
def test_classes_compete_with_other_jobs(base):
    """On three GPUs a short lone job goes first; arrays of the rest hold jobs of one class each."""
    made = instance([2.0, *[20.0] * 8], gpus=3, classes=[None, *"cccc", *"dddd"])
    plan = planned(opening(made), f"{base}+fused")
    class_of = {job.id: job.fusible for job in made.jobs}
    arrays = {}
    for job_id, held in plan.allocations.items():
        arrays.setdefault(held.array or job_id, set()).add(class_of[job_id])
    assert "j0" in arrays
    assert len(arrays) == 3
    assert all(len(classes) == 1 for classes in arrays.values())


@pytest.mark.parametrize("base", BASES)
def test_power_is_decided_jointly(base):
    """A cap that one full clock breaks lets the array run slower, as any elastic job."""
    made = instance([20.0] * 6, gpus=1)
    capped = replace(made, budget=Budget(power_cap_w=StepSeries(times_s=(0.0,), values=(250.0,))))
    plan = planned(opening(capped), f"{base}+fused")
    assert widths(plan) == [6]
    assert {a.option.clock for a in plan.allocations.values()} == {0.5}


def test_newcomers_join_once_they_have_waited_for_the_pause():
    """Four wait for one newcomer no less than 4 x 3 s of pause: it joins at the next event."""
    made = instance([60.0] * 4 + [60.0, 1.0], gpus=1, submit_s=[0, 0, 0, 0, 5, 20])
    for gather, joined in ((0.0, [0, 5, 20]), (1.0, [0, 20]), (1000.0, [0])):
        schedule = run(made, f"prices+fused(gather={gather})")
        assert check(made, schedule) == []
        first = schedule.jobs[0].segments
        widened = [b.start_s for a, b in pairwise(first) if b.option.width > a.option.width]
        assert [t for t in [0, *widened] if t < 30] == joined


@pytest.mark.parametrize("base", BASES)
def test_without_classes_the_base_decides(base):
    """Jobs that may not share are planned as by the base alone, to the last digit."""
    made = instance([7.0, 3.0, 9.0], classes=[None, None, "c"], gpus=2)
    seen = Jointly(opening(made), 1.0)
    assert seen.classes == {}
    plain, fused = run(made, base), run(made, f"{base}+fused")
    assert fused.jobs == plain.jobs


def test_unknown_bases_are_refused():
    """Only optimising policies take classes as elastic jobs."""
    with pytest.raises(InputError, match="fifo\\+fused"):
        policy("fifo+fused")


@settings(max_examples=60, deadline=None)
@given(
    kept=st.lists(st.integers(1, 6), max_size=4),
    free=st.integers(0, 12),
    more=st.integers(0, 4),
    most=st.integers(1, 7),
)
def test_regrouping_loses_nobody_and_disturbs_few(kept, free, more, most):
    """Everybody is somewhere once; arrays that nobody joins only lose members."""
    names, total, gpus = iter(range(1000)), sum(kept) + free, len(kept) + more
    arrays = [[next(names) for _ in range(size)] for size in sorted(kept, reverse=True)]
    loose = [next(names) for _ in range(free)]
    sizes = fastest_cut([k**0.5 for k in range(1, most + 1)], total, gpus)
    cuts, left = regroup(arrays, loose, sizes, most)
    assert sorted([*left, *(m for cut in cuts for m in (*cut.stay, *cut.join))]) == [*range(total)]
    assert len(cuts) <= gpus
    assert all(cut.width <= max(most, *kept, 1) for cut in cuts)
    for cut, before in zip(cuts, arrays, strict=False):
        assert cut.stay == before[: len(cut.stay)]
        assert cut.stay
    if not free and not more:
        assert not any(cut.join for cut in cuts)
    if left:
        assert all(cut.width >= most for cut in cuts)


@given(
    speed=st.lists(st.floats(0.1, 9.0), min_size=1, max_size=4),
    jobs=st.integers(0, 9),
    gpus=st.integers(1, 4),
)
def test_the_fastest_cut_is_that_of_all(speed, jobs, gpus):
    """By dynamic programming, as by trying every cut of as many jobs as the GPUs hold."""
    total, own = min(jobs, gpus * len(speed)), [0.0, *speed]
    cuts = combinations_with_replacement(range(len(own)), gpus)
    best = max(sum(own[k] for k in cut) for cut in cuts if sum(cut) == total)
    found = fastest_cut(speed, jobs, gpus)
    assert sum(found) == total
    assert sum(own[k] for k in found) == pytest.approx(best)


@settings(max_examples=12, deadline=None)
@given(
    works=st.lists(st.sampled_from([3.0, 8.0, 20.0]), min_size=2, max_size=8),
    seed=st.integers(0, 1000),
    spec=st.sampled_from(["hfht", "prices+fused", "milp+fused", "prices+fused(gather=0)"]),
)
def test_runs_are_in_order(works, seed, spec):
    """Whatever arrives when: no plan is refused, the schedule is sound, all work is done."""
    times = [float((seed * (k + 3)) % 17) for k in range(len(works))]
    classes = ["cd"[(seed >> k) % 2] for k in range(len(works))]
    made = instance(works, gpus=2, classes=classes, submit_s=sorted(times))
    schedule = run(made, spec)
    assert [r.violations for r in schedule.rounds if r.violations] == []
    assert check(made, schedule) == []


def test_fusing_frees_gpus():
    """Seven jobs on one GPU take less of it fused than one after another."""
    made = instance([50.0] * 7, gpus=1)
    plain, fused = run(made, "prices"), run(made, "prices+fused")
    spent = [job_figures(schedule).gpu_s.sum() for schedule in (plain, fused)]
    assert spent[1] < 0.5 * spent[0]
    assert summarise(made, fused)["mean_jct_s"] < summarise(made, plain)["mean_jct_s"]


def test_an_array_is_kept_as_it_runs():
    """A plan for a round in which nothing changed leaves the arrays the very objects they are."""
    made = instance([50.0] * 4, gpus=1)
    round = opening(made)
    held = array(round, ["j0", "j1", "j2", "j3"], "fused", 0, "a")
    running = tuple(replace(s, allocation=held[s.job.id], started=True) for s in round.waiting)
    again = replace(round, running=running, waiting=(), now_s=10.0)
    plan = planned(again, "prices+fused")
    assert all(plan.allocations[i] is held[i] for i in held)


def test_a_run_goes_on_from_its_journal(tmp_path):
    """Half of the decisions replayed, re-slices between them included, the rest made again."""
    made = instance([9.0, 12.0, 15.0, 7.0, 20.0], gpus=1, submit_s=[0, 0, 3, 9, 20])
    path = tmp_path / "journal.jsonl"
    whole = run(made, "prices+fused", journal=path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2 + 1]))
    again = run(made, "prices+fused", journal=path)
    assert again.jobs == whole.jobs
    assert again.energy == whole.energy


def running(round, arrays, firm=()):
    """Return a round in which arrays of jobs (mode, node, clock, ids) run, and the others wait."""
    held = {}
    for mode, node, clock, ids in arrays:
        own = array(round, ids, mode, node, ids[0])
        if clock < 1:  # half the rate; 40 + 160 / 2 W instead of 200
            share = 120.0 / len(ids)
            own = {
                i: replace(
                    a, option=replace(a.option, clock=0.5, rate=a.option.rate / 2, power_w=share)
                )
                for i, a in own.items()
            }
        held |= own
    return standing(round, held, firm=firm)


FUSED = ("prices+fused", "milp+fused", "evolve+fused(generations=5)")


@pytest.mark.parametrize("spec", FUSED)
def test_arrays_at_two_clocks_hold_a_gpu_each(spec):
    """One of them may not be stopped: both stay, and the fifth job finds no GPU."""
    made = instance([1000.0] * 4 + [3000.0], gpus=2, classes=[*"cccc", "d"])
    arrays = [("packed", 0, 1.0, ["j0", "j1"]), ("packed", 0, 0.5, ["j2", "j3"])]
    round = running(opening(made), arrays, firm=["j2"])
    plan = planned(round, spec)
    assert plan.allocations == round.held


@pytest.mark.parametrize("spec", FUSED)
def test_no_node_sleeps_below_an_array_at_another_clock(spec):
    """Energy is limited, so that nodes sleep that nobody holds."""
    made = instance([1000.0] * 3, gpus=3, nodes=2)
    arrays = [("packed", 0, 1.0, ["j0"]), ("packed", 1, 0.5, ["j1", "j2"])]
    round = replace(running(opening(made), arrays, firm=["j1"]), energy_j=600.0 * 3600)
    plan = planned(round, spec)
    assert plan.allocations.keys() == {"j0", "j1", "j2"}


@pytest.mark.parametrize("spec", FUSED)
def test_an_array_that_must_run_is_not_stopped_for_a_short_job(spec):
    """On its one GPU a job of 1 s would go first."""
    made = instance([1000.0, 1000.0, 1.0], gpus=1, classes=["c", "c", None])
    round = running(opening(made), [("packed", 0, 1.0, ["j0", "j1"])], firm=["j1"])
    assert planned(round, spec).allocations == round.held
    assert planned(
        running(opening(made), [("packed", 0, 1.0, ["j0", "j1"])]), spec
    ).allocations.keys() == {"j2"}


def test_time_that_is_over_keeps_arrays_at_all_clocks_and_in_all_pools():
    """Of one class in two pools, at two clocks, and in a pool where no two jobs share a GPU."""
    first = opening(instance([50.0] * 6, gpus=3))
    net, cluster = first.profiles["net"], first.cluster
    names = {"A": "nodes", "B": "b", "C": "c"}
    net = replace(
        net,
        throughput=dict.fromkeys(names, net.throughput["A"]),
        power=dict.fromkeys(names, net.power["A"]),
        sharing=dict.fromkeys("AB", net.sharing["A"]),
    )
    cluster = replace(
        cluster,
        gpu_types=tuple(replace(cluster.gpu_types[0], name=n) for n in names),
        node_groups=tuple(
            replace(cluster.node_groups[0], name=group, gpu_type=n) for n, group in names.items()
        ),
    )
    first = replace(first, profiles={"net": net}, cluster=cluster)
    arrays = [
        ("packed", 0, 1.0, ["j0", "j1"]),
        ("packed", 0, 0.5, ["j2", "j3"]),
        ("packed", 1, 1.0, ["j4"]),
        ("packed", 2, 1.0, ["j5"]),
    ]
    round = running(first, arrays)
    states = [
        replace(s, allocation=replace(s.allocation, option=replace(s.allocation.option, pool=pool)))
        for s, pool in zip(round.running, (0, 0, 0, 0, 1, 2), strict=True)
    ]
    round = replace(round, running=tuple(states))
    plan = policy("prices+fused").plan(round, deadline=Deadline(1e-9), seed=0)
    assert check(round, plan) == []
    assert plan.allocations == round.held
    others = tuple(replace(s, allocation=None) for s in states[:5])
    alone = replace(round, running=tuple(states[5:]), waiting=others)
    assert "j5" in planned(alone, "prices+fused").allocations


@pytest.mark.parametrize("spec", FUSED)
def test_beside_an_array_that_must_run_the_class_starts(spec):
    """Of three GPUs an array has one that may not be stopped: who waits begins on the others."""
    made = instance([50.0] * 6, gpus=3)
    round = running(opening(made), [("packed", 0, 1.0, ["j0", "j1"])], firm=["j0"])
    plan = planned(round, spec)
    assert len(plan.allocations) == 6
    assert all(plan.allocations[i] is round.held[i] for i in ("j0", "j1"))


@pytest.mark.parametrize("spec", FUSED)
def test_an_array_with_a_job_that_might_have_more_gpus_stays_whole(spec):
    """It is of no class, as it may grow; alone with its fellow it is one thing."""
    made = instance([50.0] * 4, gpus=2)
    jobs = (replace(made.jobs[0], max_gpus=2), *made.jobs[1:])
    round = running(opening(replace(made, jobs=jobs)), [("packed", 0, 1.0, ["j0", "j1"])])
    plan = planned(round, spec)
    assert [plan.allocations.get(i) for i in ("j0", "j1")] == [round.held[i] for i in ("j0", "j1")]
    assert {"j2", "j3"} <= plan.allocations.keys()


def test_a_class_whose_pool_is_out_of_service_waits():
    """All GPUs of the other pool are out: the class is offered those that are left."""
    round = opening(instance([50.0] * 4, gpus=1))
    group = round.cluster.node_groups[0]
    other = replace(group, name="other", partition="other")
    cluster = replace(round.cluster, node_groups=(group, other), out=((1, 1),))
    waiting = tuple(
        replace(s, job=replace(s.job, partition="other" if k < 2 else "default"))
        for k, s in enumerate(round.waiting)
    )
    plan = planned(replace(round, cluster=cluster, waiting=waiting), "prices+fused")
    assert plan.allocations.keys() == {"j2", "j3"}


def test_two_arrays_never_have_one_name():
    """One of class d, which came later, is called as a job of class c, which begins an array."""
    made = instance([50.0] * 4, gpus=2, classes=[*"ccdd"])
    round = running(opening(made), [("packed", 0, 1.0, ["j2", "j3"])])
    named = tuple(
        replace(s, job=replace(s.job, submit_s=5.0), allocation=replace(s.allocation, array="j0"))
        for s in round.running
    )
    plan = planned(replace(round, running=named), "prices+fused")
    assert {a.array for i, a in plan.allocations.items() if i in ("j2", "j3")} == {"j0"}
    assert len(plan.allocations) == 4


@pytest.mark.parametrize("spec", ["prices+fused", "milp+fused"])
@pytest.mark.parametrize(
    ("memory_gib", "cap_w", "clock", "width", "rate"),
    [
        (16.0, 220.0, 0.5, 2, 16 / 9),  # 8 samples in 3 s, and 2/3 of that in an array of two
        (10.0, 220.0, 0.5, 1, 8 / 3),  # two would need 13 GiB: 1 + 2 x (2 + 8/2)
        (10.0, 300.0, 1.0, 2, 8 / 1.85 / 1.5),  # and need 9 GiB at full clock
    ],
)
def test_an_array_has_the_passes_of_its_clock(spec, memory_gib, cap_w, clock, width, rate):
    """At full clock two passes are fastest, at half of it one, which needs more memory.

    Two passes of 4 samples take 2 x 0.9 + 0.05 s, one of 8 takes 1 + 1 s; at half the clock 3.65
    and 3 s. A GPU draws 50 W idle, 120 or 200 W busy, and the host 100 W.
    """
    model = Tabular(
        gpus=(1, 1),
        nodes=(1, 1),
        local_batch=(4.0, 8.0),
        step_s=(0.95, 2.0),
        sync_s=(0.05, 1.0),
        phi=1.0,
    )
    sharing = (
        Sharing(mode="exclusive", time=AffineTime(alpha_s=1.0, beta_s=0.0)),
        Sharing(mode="fused", time=AffineTime(alpha_s=0.5, beta_s=0.5)),
    )
    profile = Profile(
        name="net",
        throughput={"A": model},
        power={"A": PowerCurve(a_w=40.0, b_w=160.0)},
        base_batch=8.0,
        memory=Memory(base_gib=1.0, model_gib=2.0, sample_gib=0.5),
        sharing={"A": sharing},
    )
    gpu = GpuType(name="A", memory_gib=memory_gib, idle_w=50.0, clocks=(0.5, 1.0))
    jobs = [
        Job(id=i, submit_s=0.0, profile="net", fusible="c", estimate=Estimate(work=9e3))
        for i in ("a", "b")
    ]
    round_ = Round(
        now_s=10.0,
        cluster=uniform_cluster(gpu, 1, 1, host_idle_w=100.0),
        profiles={"net": profile},
        waiting=tuple(JobState(job=job, since_s=0.0) for job in jobs),
        power_cap_w=cap_w,
    )
    plan = planned(round_, spec)
    options = [held.option for held in plan.allocations.values()]
    assert len(options) == width
    for option in options:
        assert (option.clock, option.width) == (clock, width)
        assert option.rate == pytest.approx(rate)


class Watch:
    """A clock that stands still at first, and is past every end after some looks."""

    def __init__(self, looks):
        self.looks = looks

    def perf_counter(self):
        """Look at it."""
        self.looks -= 1
        return 0.0 if self.looks >= 0 else float("inf")


@pytest.mark.parametrize("looks", range(10, 40))
def test_a_class_counts_with_its_members_where_time_is_short(looks, monkeypatch):
    """Two jobs of great weight, and one that is nearly done: a plan that was cut lost members."""
    heavy, round_ = {"wide": 1e6, "d0": 1e9}, sharing()["arrays"]

    def changed(state):
        job = replace(state.job, weight=heavy.get(state.job.id, 1.0))
        job = replace(job, estimate=Estimate(work=0.6)) if job.id == "e" else job
        return replace(state, job=job)

    running, waiting = (tuple(map(changed, own)) for own in (round_.running, round_.waiting))
    deadline = Deadline(1e6)
    monkeypatch.setattr(clocks, "time", Watch(looks))
    made = policy("evolve+fused", generations=3)
    round_ = replace(round_, running=running, waiting=waiting)
    plan = made.plan(round_, deadline=deadline, seed=0)
    if plan.stop is StopReason.TIME_LIMIT and (plan.gap is None or plan.gap > GOOD):
        assert len(plan.allocations) >= len(round_.held)
