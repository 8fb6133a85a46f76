"""Jobs that share a GPU, driven: true rates, re-slicing, energy; driver and checker agree."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from arrays import COSTS, Told, array, instance
from ronda.horizon.driver import run
from ronda.instances.check.checker import check
from ronda.instances.instance import Faults, Outage, Straggler
from ronda.instances.job import Costs, Truth
from ronda.instances.outcome.metrics import job_figures, summarise
from ronda.instances.plan import Plan

FREE = Costs()


def together(mode, names=("j0", "j1", "j2", "j3")):
    """Tell all jobs to begin as one array, and what runs to go on."""

    def tell(round):
        waiting = [s.job.id for s in round.waiting if s.job.id in names]
        return round.held | (array(round, waiting, mode, 0, "a") if waiting else {})

    return Told(tell)


def driven(made, policy, **options):
    """Return the schedule of a run in which no plan was refused, and that is in order."""
    schedule = run(made, policy, **options)
    assert [r.violations for r in schedule.rounds if r.violations] == []
    assert check(made, schedule) == []
    return schedule


def test_a_member_that_ends_lets_the_others_go_on_faster():
    """Fused steps take 1.5 s for two and 1 s for one alone: 10 work by 15 s, 10 more by 25 s."""
    made = instance([10, 20], costs=FREE, gpus=1)
    schedule = driven(made, together("fused"))
    first, second = schedule.jobs
    assert first.end_s == pytest.approx(15.0)
    assert second.end_s == pytest.approx(25.0)
    assert [s.option.width for s in second.segments] == [2, 1]
    assert [s.array for s in second.segments] == ["a", None]
    assert [s.option.mode for s in second.segments] == ["fused", "exclusive"]
    assert [s.done for s in second.segments] == pytest.approx([10.0, 10.0])


def test_an_array_counts_once():
    """One GPU draws 200 W for 25 s beside 100 W of its host; it is used all of that time."""
    made = instance([10, 20], costs=FREE, gpus=1)
    schedule = driven(made, together("fused"))
    assert schedule.energy.busy_j == pytest.approx(200 * 25)
    assert schedule.energy.idle_gpu_j == pytest.approx(0.0, abs=1e-6)
    assert schedule.energy.total_j == pytest.approx(300 * 25)
    assert summarise(made, schedule)["gpu_utilisation"] == pytest.approx(1.0)
    # 7.5 s of the first 15 s each, and 10 s alone.
    assert job_figures(schedule).gpu_s.tolist() == pytest.approx([7.5, 17.5])


def test_reslicing_is_no_restart():
    """Four fused jobs of four lengths: no pause, no restart; 2 s to start with are all."""
    made = instance([8, 10, 12, 14], gpus=1)
    schedule = driven(made, together("fused"))
    figures = job_figures(schedule)
    assert figures.restarts.tolist() == [0, 0, 0, 0]
    assert figures.preemptions.tolist() == [0, 0, 0, 0]
    # T = 2, 1.75, 1.5 and 1 s for 8, 2, 2 and 2 steps.
    assert [o.end_s for o in schedule.jobs] == pytest.approx([18, 21.5, 24.5, 26.5])


def test_the_slices_of_an_array_are_as_measured():
    """Three slices lie between two (1.25 s) and four (2.5 s): 1.875 s a step."""
    made = instance([4, 4, 4], costs=FREE, gpus=1)
    small = {"net": replace(made.profiles["net"], memory=None)}
    schedule = driven(replace(made, profiles=small), together("slices"))
    assert schedule.end_s == pytest.approx(7.5)


def test_an_array_begins_when_its_last_member_is_ready():
    """One that ran alone restarts in 3 s, the newcomer starts in 2 s: both go on after 3 s."""

    def tell(round):
        if round.now_s < 10:
            return array(round, ["j0"], "fused", 0, "a")
        return array(round, ["j0", "j1"], "fused", 0, "b") if round.waiting else round.held

    made = instance([20, 30], gpus=1, submit_s=[0, 10])
    schedule = driven(made, Told(tell))
    assert [s.resume_s for o in schedule.jobs for s in o.segments if s.array] == [13.0, 13.0]
    # j0: 8 done by 10 s, 12 more at 2/3 by 31 s; j1: 12 by then and 18 alone.
    assert [o.end_s for o in schedule.jobs] == pytest.approx([31.0, 49.0])


def test_a_member_that_fails_leaves_its_array():
    """One of two fails after 6 of 10 (9 s); its fellow goes on alone, and it waits for a GPU."""
    made = instance([10, 10], costs=FREE, gpus=1)
    failing = replace(made.jobs[0], truth=Truth(work=10, failures=(6.0,)))
    made = replace(made, jobs=(failing, made.jobs[1]))

    def tell(round):
        if not round.running:
            return array(round, [s.job.id for s in round.waiting], "fused", 0, "a")
        return round.held

    schedule = driven(made, Told(tell))
    assert schedule.jobs[1].end_s == pytest.approx(13.0)
    assert schedule.jobs[0].end_s == pytest.approx(17.0)


def test_a_plan_may_take_a_member_out():
    """The policy stops one of three; the others go on narrower without a pause."""

    def tell(round):
        if not round.running:
            ids = [s.job.id for s in round.waiting]
            return array(round, ids, "fused", 0, "a" if len(ids) == 3 else "b")
        if round.now_s == 10 and len(round.running) == 3:
            return array(round, ["j0", "j1"], "fused", 0, "a")
        return round.held

    made = instance([20, 20, 20, 1], costs=COSTS, submit_s=[0, 0, 0, 10], gpus=1)
    schedule = driven(made, Told(tell))
    # 8 s at T = 1.75, then 1.5 s a step: 2 + 8 + (20 - 8 / 1.75) 1.5.
    assert schedule.jobs[0].end_s == pytest.approx(10 + (20 - 8 / 1.75) * 1.5)
    assert job_figures(schedule).restarts.tolist()[:3] == [0, 0, 1]


WRONG = {
    "too many for the memory": (8, "fused", "memory"),
    "too many processes": (6, "packed", "memory"),
    "slices too small": (4, "slices", "memory"),
    "more than were measured": (5, "slices", "width"),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_array_that_does_not_fit_never_runs(case):
    """The plan is refused; what waits is started alone in its place."""
    count, mode, code = WRONG[case]
    made = instance([5] * count, gpus=1)
    names = [job.id for job in made.jobs]

    def tell(round):
        if round.running:
            return round.held
        two = array(round, names[:2], mode, 0, "a")[names[0]]
        return dict.fromkeys(names, replace(two, option=replace(two.option, width=count)))

    schedule = run(made, Told(tell))
    assert any(code in text for text in schedule.rounds[0].violations)
    assert {s.option.width for o in schedule.jobs for s in o.segments} == {1}


def test_members_must_be_alike():
    """Jobs of two classes are no array, nor one that is in another place."""
    made = instance([5, 5], classes=["c", "d"])
    refused = run(made, Told(lambda r: r.held or array(r, ["j0", "j1"], "fused", 0, "a")))
    assert any("array" in text for text in refused.rounds[0].violations)

    def apart(round):
        if round.running:
            return round.held
        told = array(round, ["j0", "j1"], "fused", 0, "a")
        return told | {"j1": replace(told["j1"], placement=((1, 1),))}

    refused = run(instance([5, 5], nodes=2), Told(apart))
    assert any("array" in text for text in refused.rounds[0].violations)


def chaos(seed):
    """Return a policy that shuffles jobs into arrays, and often leaves them as they are."""

    def tell(round):
        rng = random.Random(f"{seed} {round.now_s}")
        if round.running and rng.random() < 0.5:
            return round.held
        told, live = {}, [s.job.id for s in round.jobs]
        jobs = {s.job.id: s.job for s in round.jobs}
        rng.shuffle(live)
        gpus = [n for n, g in enumerate(round.cluster.topology.node_gpus) for _ in range(int(g))]
        for k, node in enumerate(gpus):
            if not live:
                break
            fellows = [i for i in live if jobs[i].fusible == jobs[live[0]].fusible]
            mode, most = rng.choice([("fused", 7), ("packed", 5), ("slices", 2)])
            taken = fellows[: rng.randint(1, min(most, len(fellows)))]
            told |= array(round, taken, mode, node, f"a{k}-{round.now_s:g}")
            live = [i for i in live if i not in taken]
        assert check(round, Plan(allocations=told)) == []  # as the ledger finds
        return told

    return Told(tell)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    works=st.lists(st.sampled_from([3.0, 5.0, 8.0, 8.0, 20.0]), min_size=2, max_size=9),
    costs=st.sampled_from([COSTS, FREE, Costs(start_s=1, restart_s=4, checkpoint_s=3)]),
    faults=st.booleans(),
)
def test_driver_and_checker_agree_on_any_arrays(seed, works, costs, faults):
    """Whatever is shuffled, slowed and broken: work, rates, capacity, power and energy agree."""
    rng = random.Random(seed)
    made = instance(
        works,
        nodes=2,
        gpus=1,
        costs=costs,
        classes=[rng.choice("cd") for _ in works],
        submit_s=sorted(rng.choice([0.0, 4.0, 9.5]) for _ in works),
    )
    if faults:
        broken = Faults(
            outages=(Outage(node=0, start_s=12.0, end_s=20.0),),
            stragglers=(Straggler(node=1, start_s=5.0, end_s=15.0, speed=0.5),),
        )
        made = replace(made, faults=broken)
    schedule = driven(made, chaos(seed), seed=seed)
    segments = [s for o in schedule.jobs for s in o.segments]
    assert sum(s.done for s in segments) == pytest.approx(sum(works))
    used_s = sum(s.option.gpus / s.option.width * (s.end_s - s.start_s) for s in segments)
    assert used_s <= 2 * schedule.end_s + 1e-6
