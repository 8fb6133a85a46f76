"""Schedules against instances: one derived by hand, and every rule broken by one mutation."""

import re

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from ronda.instances import check as check_module
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.check import check
from ronda.instances.check_timeline import energy, flatten
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Partition, Rack
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Job, Option, Truth
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.profile import (
    Memory,
    NoiseCurve,
    Parametric,
    PowerCurve,
    Profile,
    Rigid,
)
from ronda.instances.schedule import Energy, JobOutcome, RoundRecord, Schedule, Segment


def group(name, count, rack, **fields):
    """Return nodes of two A that draw 100 W awake and 5 W asleep, and wake in 20 s."""
    host = {"gpus_per_node": 2, "gpu_type": "A", "host_idle_w": 100, "sleep_w": 5, "wake_s": 20}
    return NodeGroup(name=name, count=count, rack=rack, **{**host, **fields})


# Nodes 0 and 1 in rack r1, node 2 in r2; node 3 is of another partition and draws nothing.
CLUSTER = Cluster(
    gpu_types=(
        GpuType(name="A", memory_gib=16, idle_w=10, clocks=(0.5, 1.0)),
        GpuType(name="Z", memory_gib=16),
    ),
    node_groups=(
        group("g1", 2, "r1"),
        group("g2", 1, "r2"),
        NodeGroup(name="g3", count=1, gpus_per_node=1, gpu_type="Z", rack="r3", partition="other"),
    ),
    racks=(
        Rack(name="row", power_cap_w=840),
        Rack(name="r1", parent="row", power_cap_w=530),
        Rack(name="r2", parent="row"),
        Rack(name="r3"),
    ),
    partitions=(Partition(name="other"),),
)
ELASTIC = Profile(
    name="elastic",
    throughput={"A": Parametric(alpha_c_s=0.1, beta_c_s=0.01, alpha_r_s=0.4, alpha_n_s=0.7)},
    power={"A": PowerCurve(a_w=40, b_w=160)},
    base_batch=40,
    batches=(40, 80),
)
RIGID = Profile(
    name="rigid", throughput={"A": Rigid(), "Z": Rigid()}, power={"A": PowerCurve(a_w=60)}
)
INSTANCE = Instance(
    name="hand",
    cluster=CLUSTER,
    profiles={"elastic": ELASTIC, "rigid": RIGID},
    curves={
        "noise": NoiseCurve(until=(500, 10_000), batches=(40, 80), scale=((40, 40), (120, 120)))
    },
    jobs=(
        Job(
            id="fixed",
            submit_s=0,
            profile="rigid",
            gpus=2,
            preemptible=False,
            truth=Truth(work=100),
        ),
        Job(
            id="moved",
            submit_s=10,
            profile="elastic",
            max_gpus=2,
            truth=Truth(work=900, curve="noise"),
        ),
        Job(id="short", submit_s=100, profile="rigid", truth=Truth(work=5)),
    ),
    costs=Costs(start_s=5, restart_s=7),
    budget=Budget(
        power_cap_w=StepSeries(times_s=(0, 57, 70), values=(535, 840, 460)),
        energy=EnergyBudget(joules=425_000, horizon_s=1000, credit_j=3505),
    ),
)
# fixed: two GPUs, 60 W each: 5 s to start, 100 s of work.
FIXED = Segment(
    start_s=0,
    resume_s=5,
    end_s=105,
    done=100,
    option=Option(pool=0, gpus=2, span="node", rate=1, power_w=120),
    placement=((0, 2),),
)
# moved, batch 40 on one GPU: T = 0.1 + 0.4 = 0.5 s, efficiency 1: 80/s for 5 s; 40 + 160 W.
FIRST = Segment(
    start_s=10,
    resume_s=15,
    end_s=20,
    done=400,
    option=Option(pool=0, gpus=1, batch=40, rate=80, power_w=200),
    placement=((1, 1),),
)
# Then batch 80 over two nodes: T = 0.1 + 0.4 + 0.7 = 1.2 s: 80/1.2 samples/s. Node 2 is woken at
# 30 and awake at 50, the restart takes 7 s. Up to 500 samples the efficiency is
# (40 + 40)/(40 + 80) = 2/3: 100/(80/1.2 * 2/3) = 2.25 s; then (120 + 40)/(120 + 80) = 0.8:
# 400/(80/1.2 * 0.8) = 7.5 s; ends at 57 + 9.75.
SECOND = Segment(
    start_s=30,
    resume_s=57,
    end_s=66.75,
    done=500,
    option=Option(pool=0, gpus=2, batch=80, rate=44, power_w=400),
    placement=((1, 1), (2, 1)),
)
SHORT = Segment(
    start_s=105,
    resume_s=110,
    end_s=115,
    done=5,
    option=Option(pool=0, gpus=1, rate=1, power_w=60),
    placement=((0, 1),),
)
SLEEPS = ((2, 0.0, 30.0), (1, 80.0, 115.0))
# Watts from each time on: 0 s 200 + 5 + 4 * 10 = 245; 5 s (fixed) 345; 15 s (moved) 535;
# 20 s 345; 30 s (node 2 wakes) 300 + 120 + 4 * 10 = 460; 57 s 840; 66.75 s 460;
# 80 s (node 1 asleep) 345; 105 s 245; 110 s (short) 295; together 48,830 J, and 37,505 J at 80 s,
# which is just what has accrued by then: 3,505 + 425 * 80.
ENERGY = Energy(
    busy_j=120 * 100 + 200 * 5 + 400 * 9.75 + 60 * 5,  # 17,200
    paused_j=20 * 5 + 10 * 5 + 20 * 27 + 10 * 5,  # 740
    # 690 GPU-seconds in all, 130 of them asleep, 210 + 10 + 73.5 + 10 held.
    idle_gpu_j=10 * (690 - 130 - 303.5),  # 2,565
    host_j=100 * (345 - 65),
    sleep_j=5 * 65,
)


def record(now_s):
    """Return the record of a round."""
    return RoundRecord(
        now_s=now_s,
        waiting=1,
        running=0,
        started=1,
        stopped=0,
        changed=0,
        objective=None,
        bound=None,
        stop=StopReason.COMPLETE,
        status=SolutionStatus.FEASIBLE,
        solve_s=0.001,
        overhead_s=0.0,
        overrun=False,
        power_w=0.0,
    )


SCHEDULE = Schedule(
    instance="hand",
    fingerprint="",
    policy="by hand",
    jobs=(
        JobOutcome(id="fixed", submit_s=0, end_s=105, segments=(FIXED,)),
        JobOutcome(id="moved", submit_s=10, end_s=66.75, segments=(FIRST, SECOND)),
        JobOutcome(id="short", submit_s=100, end_s=115, segments=(SHORT,)),
    ),
    rounds=tuple(record(t) for t in (0, 10, 20, 30, 80, 105)),
    sleeps=SLEEPS,
    energy=ENERGY,
    end_s=115,
)


def of(job_id, *segments, end_s=None, **fields):
    """Return the schedule with the history of one job changed."""
    outcomes = {o.id: o for o in SCHEDULE.jobs}
    old = outcomes[job_id]
    end_s = segments[-1].end_s if segments and end_s is None else end_s
    changed = replace(
        old,
        segments=segments or old.segments,
        **({} if end_s is None else {"end_s": end_s}),
        **fields,
    )
    return replace(SCHEDULE, jobs=tuple((outcomes | {job_id: changed}).values()))


def metered(schedule, **fields):
    """Return a schedule that claims its true energy."""
    changed = replace(schedule, **fields)
    exact = energy(flatten(changed), CLUSTER.topology, changed.end_s)
    return replace(changed, energy=exact)


def but(segment, placement=None, **option):
    """Return a segment with another placement or option."""
    return replace(
        segment,
        option=replace(segment.option, **option),
        placement=segment.placement if placement is None else placement,
    )


def job(job_id, **fields):
    """Return the instance with some fields of a job changed."""
    changed = tuple(replace(j, **fields) if j.id == job_id else j for j in INSTANCE.jobs)
    return replace(INSTANCE, jobs=changed)


def profile(changed):
    """Return the instance with a profile changed."""
    return replace(INSTANCE, profiles={**INSTANCE.profiles, changed.name: changed})


def cap(*times_s):
    """Return the instance with the steps of its power cap at other times."""
    series = StepSeries(times_s=times_s, values=(535, 840, 460))
    return replace(INSTANCE, budget=Budget(power_cap_w=series))


def racks(**caps):
    """Return the instance with other rack caps and no budget."""
    changed = tuple(replace(r, power_cap_w=caps.get(r.name)) for r in CLUSTER.racks)
    return replace(INSTANCE, cluster=replace(CLUSTER, racks=changed), budget=Budget())


def racks_off(instance):
    """Return an instance without rack caps."""
    free = tuple(replace(rack, power_cap_w=None) for rack in instance.cluster.racks)
    return replace(instance, cluster=replace(instance.cluster, racks=free))


JOBS = SCHEDULE.jobs
BROKEN = {
    "instance": (INSTANCE, replace(SCHEDULE, instance="another")),
    "missing-job": (INSTANCE, replace(SCHEDULE, jobs=(JOBS[0], JOBS[2]))),
    "duplicate-job": (INSTANCE, replace(SCHEDULE, jobs=(*JOBS, JOBS[0]))),
    "unknown-job": (INSTANCE, replace(SCHEDULE, jobs=(*JOBS, replace(JOBS[0], id="ghost")))),
    "order": (INSTANCE, replace(SCHEDULE, jobs=(JOBS[0], JOBS[2], JOBS[1]))),
    "rounds": (INSTANCE, replace(SCHEDULE, rounds=SCHEDULE.rounds[::-1])),
    "submit": (INSTANCE, of("moved", submit_s=9)),
    "early": (job("moved", submit_s=11), of("moved", submit_s=11)),
    "times": (INSTANCE, of("short", replace(SHORT, resume_s=116))),
    "times, NaN": (INSTANCE, of("short", replace(SHORT, resume_s=float("nan")))),
    "overlap": (INSTANCE, of("moved", FIRST, replace(SECOND, start_s=19))),
    "end, not running": (INSTANCE, of("moved", end_s=70)),
    "end, never ran": (
        INSTANCE,
        replace(SCHEDULE, jobs=(JOBS[0], replace(JOBS[1], segments=()), JOBS[2])),
    ),
    "end, too late": (INSTANCE, metered(SCHEDULE, end_s=120)),
    "end, too early": (INSTANCE, replace(SCHEDULE, end_s=114)),
    "must-run": (job("moved", preemptible=False), SCHEDULE),
    "delay, start": (INSTANCE, of("fixed", replace(FIXED, resume_s=4, end_s=104))),
    "delay, restart": (replace(INSTANCE, costs=Costs(start_s=5, restart_s=8)), SCHEDULE),
    "delay, restart by size": (
        replace(INSTANCE, costs=Costs(start_s=5, restart_by_gpus=((1, 2), (2, 8)))),
        SCHEDULE,
    ),
    "delay, of the job": (job("short", costs=Costs(start_s=5.1)), SCHEDULE),
    "delay, waking": (
        INSTANCE,
        of("moved", FIRST, replace(SECOND, resume_s=56, end_s=65.75)),
    ),
    "truth, none": (job("short", truth=None), SCHEDULE),
    "truth, no such curve": (replace(INSTANCE, curves={}), SCHEDULE),
    "progress": (
        INSTANCE,
        of("moved", replace(FIRST, done=401), replace(SECOND, done=499)),
    ),
    "progress, rigid": (INSTANCE, of("fixed", replace(FIXED, resume_s=6))),
    "work, too little": (job("fixed", truth=Truth(work=101)), SCHEDULE),
    "work, too much": (job("fixed", truth=Truth(work=99)), SCHEDULE),
    "sleep, twice at once": (INSTANCE, metered(SCHEDULE, sleeps=(*SLEEPS, (2, 10.0, 20.0)))),
    "sleep, beyond the end": (INSTANCE, replace(SCHEDULE, sleeps=(SLEEPS[0], (1, 80.0, 116.0)))),
    "asleep": (INSTANCE, metered(SCHEDULE, sleeps=(*SLEEPS, (0, 104.0, 115.0)))),
    "capacity": (
        replace(INSTANCE, budget=Budget()),
        metered(
            of("short", replace(SHORT, start_s=100, resume_s=105, end_s=110)),
            sleeps=(SLEEPS[0], (1, 80.0, 110.0)),
            end_s=110,
        ),
    ),
    "power, cap rises too late": (cap(0, 57.5, 70), SCHEDULE),
    "power, cap falls too early": (cap(0, 57, 66), SCHEDULE),
    "energy": (
        replace(
            INSTANCE,
            budget=Budget(energy=EnergyBudget(joules=425_000, horizon_s=1000, credit_j=3504)),
        ),
        SCHEDULE,
    ),
    "rack-power": (racks(r1=529.9), SCHEDULE),
    "rack-power, of the parent": (racks(row=839.9), SCHEDULE),
    "accounting": (INSTANCE, replace(SCHEDULE, energy=replace(ENERGY, paused_j=740.001))),
    "accounting, between parts": (
        INSTANCE,
        replace(SCHEDULE, energy=replace(ENERGY, paused_j=741.0, busy_j=17_199.0)),
    ),
    "pool": (INSTANCE, of("short", but(SHORT, ((3, 1),)))),
    "partition": (INSTANCE, of("short", but(SHORT, ((3, 1),), pool=1))),
    "options": (job("short", gpu_types=("Z",)), SCHEDULE),
    "gpus": (job("moved", max_gpus=1), SCHEDULE),
    "clock": (INSTANCE, of("moved", but(FIRST, clock=0.7), SECOND)),
    "batch": (INSTANCE, of("moved", but(FIRST, batch=50), SECOND)),
    "local-batch": (profile(replace(ELASTIC, min_local_batch=50.0)), SCHEDULE),
    "memory": (profile(replace(ELASTIC, memory=Memory(model_gib=17))), SCHEDULE),
    "width": (INSTANCE, of("moved", but(FIRST, width=2), SECOND)),
    "span": (INSTANCE, of("moved", FIRST, but(SECOND, span="rack"))),
    "gang": (INSTANCE, of("fixed", but(FIXED, ((0, 1),)))),
    "node": (INSTANCE, of("short", but(SHORT, ((4, 1),)))),
    "node, asleep": (INSTANCE, replace(SCHEDULE, sleeps=(*SLEEPS, (9, 0.0, 1.0)))),
    "duplicate-node": (INSTANCE, of("fixed", but(FIXED, ((0, 1), (0, 1))))),
    "option-power": (INSTANCE, of("short", but(SHORT, power_w=61))),
}


def test_the_hand_made_schedule_is_in_order():
    """Caps, budget and energy are met exactly by a schedule that was derived on paper."""
    assert check(INSTANCE, SCHEDULE) == []
    assert ENERGY.total_j == 48_830


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_is_found_alone(case):
    """Each mutation triggers the code of its rule and no other."""
    assert {v.code for v in check(*BROKEN[case])} == {case.partition(",")[0]}


def test_every_documented_code_is_broken_once():
    """The tables of the module's docstring (but for "rate") and the mutations name the same."""
    listed = re.findall(r"^([a-z-]+) {2,}\S", check_module.__doc__, flags=re.MULTILINE)
    assert set(listed) - {"code", "rate"} == {case.partition(",")[0] for case in BROKEN}


def test_a_run_that_was_cut_is_in_order():
    """A job without an end may have done only part of its work."""
    cut = of("short", replace(SHORT, resume_s=110, end_s=110, done=0))
    cut = replace(cut, jobs=(*cut.jobs[:2], replace(cut.jobs[2], end_s=None)))
    assert check(INSTANCE, metered(cut, sleeps=(SLEEPS[0], (1, 80.0, 110.0)), end_s=110)) == []


def test_what_is_left_of_a_pause_is_still_owed():
    """A job that is stopped while it starts did nothing, and owes the rest when it resumes."""
    # 2 s of 5 have passed when it is stopped: at 14 s it owes 3 s and the 5 s of a start.
    start = replace(FIRST, start_s=11, resume_s=13, end_s=13, done=0)
    again = replace(FIRST, start_s=14, resume_s=22, end_s=27)
    assert check(INSTANCE, metered(of("moved", start, again, SECOND))) == []
    sooner = replace(again, resume_s=21.9, end_s=26.9)
    assert {v.code for v in check(INSTANCE, of("moved", start, sooner, SECOND))} == {"delay"}
    # Waking up is not owed: node 2 wakes at 30 + 20 s, then 2 s of the 7 s of restart have passed.
    cut = replace(SECOND, resume_s=52, end_s=52, done=0)
    late = replace(SECOND, start_s=60, resume_s=72, end_s=81.75)  # 60 + 5 + 7
    free = replace(INSTANCE, budget=Budget())
    assert check(free, metered(of("moved", FIRST, cut, late), sleeps=SLEEPS[:1])) == []
    hasty = replace(late, resume_s=71.9, end_s=81.65)
    assert {v.code for v in check(INSTANCE, of("moved", FIRST, cut, hasty))} == {"delay"}


def test_a_job_may_hold_its_gpus_after_its_last_work():
    """With a teardown of 2 s the short job holds its GPU, at full power, until 117 s."""
    # For two seconds more: 60 W busy, 3 idle GPUs at 10 W, two hosts, and node 1 asleep.
    option = replace(SHORT.option, teardown_s=2)
    torn = of("short", replace(SHORT, option=option, end_s=117))
    torn = metered(torn, sleeps=(SLEEPS[0], (1, 80.0, 117.0)), end_s=117)
    assert torn.energy.total_j == 48_830 + 2 * (60 + 30 + 200 + 5)
    assert check(INSTANCE, torn) == []
    hasty = of("short", replace(SHORT, option=option, end_s=116))
    assert {v.code for v in check(INSTANCE, replace(hasty, end_s=116))} == {"progress"}


def test_a_segment_that_goes_on_needs_no_pause():
    """The same nodes and option without a gap are one stretch of running in two pieces."""
    one = replace(FIXED, end_s=50, done=45)
    two = replace(FIXED, start_s=50, resume_s=50, done=55)
    assert check(INSTANCE, of("fixed", one, two)) == []
    # But the pause that was still due is owed: 2 s of 5 have passed at 2 s.
    one = replace(FIXED, resume_s=2, end_s=2, done=0)
    two = replace(FIXED, start_s=2, resume_s=2, end_s=102, done=100)
    assert {v.code for v in check(INSTANCE, of("fixed", one, two))} == {"delay"}


def test_handing_over_gpus_at_one_instant_is_no_conflict():
    """Ends count before starts at the same time, also for pauses of no length."""
    jobs = tuple(
        Job(id=f"j{k}", submit_s=0, profile="rigid", gpus=2, truth=Truth(work=0.1))
        for k in range(30)
    )
    instance = replace(INSTANCE, jobs=jobs, costs=Costs(), budget=Budget())
    times = np.cumsum([0.1] * 31).tolist()
    outcomes = tuple(
        JobOutcome(
            id=f"j{k}",
            submit_s=0,
            end_s=times[k + 1],
            segments=(
                replace(
                    FIXED,
                    start_s=times[k],
                    resume_s=times[k],
                    end_s=times[k + 1],
                    done=0.1,
                ),
            ),
        )
        for k in range(30)
    )
    schedule = replace(SCHEDULE, jobs=outcomes, sleeps=(), rounds=(), end_s=times[30])
    assert check(instance, metered(schedule)) == []


@settings(max_examples=100, deadline=None)
@given(
    starts=st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 10), st.integers(0, 2)),
        min_size=1,
        max_size=12,
    )
)
def test_capacity_is_that_of_every_single_second(starts):
    """The sweep finds the nodes that counting second by second finds."""
    jobs, outcomes = [], []
    used = np.zeros((3, 40), dtype=int)
    for k, (start, work, node) in enumerate(starts):
        jobs.append(Job(id=f"j{k}", submit_s=0, profile="rigid", truth=Truth(work=work)))
        segment = replace(
            SHORT,
            start_s=start,
            resume_s=start,
            end_s=start + work,
            done=work,
            placement=((node, 1),),
        )
        outcomes.append(JobOutcome(id=f"j{k}", submit_s=0, end_s=start + work, segments=(segment,)))
        used[node, start : start + work] += 1
    instance = replace(INSTANCE, jobs=tuple(jobs), costs=Costs(), budget=Budget())
    end_s = max(o.end_s for o in outcomes)
    schedule = replace(SCHEDULE, jobs=tuple(outcomes), sleeps=(), rounds=(), end_s=end_s)
    found = check(racks_off(instance), metered(schedule))
    assert {v.where for v in found} == {f"node {n}" for n in np.flatnonzero(used.max(1) > 2)}
