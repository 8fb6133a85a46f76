"""Schedules against instances: one derived by hand, and every rule broken by one mutation."""

import re

import pytest
from msgspec.structs import replace

from hand_schedule import (
    CLUSTER,
    ELASTIC,
    ENERGY,
    FIRST,
    FIXED,
    INSTANCE,
    SCHEDULE,
    SECOND,
    SHORT,
    SLEEPS,
    metered,
    of,
)
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.check import checker as check_module
from ronda.instances.check.checker import check
from ronda.instances.instance import Faults, Outage
from ronda.instances.job import After, Costs, Truth
from ronda.instances.profile import Memory


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


NEVER = After(job="fixed", when="notok")


def cap(*times_s):
    """Return the instance with the steps of its power cap at other times."""
    series = StepSeries(times_s=times_s, values=(535, 840, 460))
    return replace(INSTANCE, budget=Budget(power_cap_w=series))


def racks(**caps):
    """Return the instance with other rack caps and no budget."""
    changed = tuple(replace(r, power_cap_w=caps.get(r.name)) for r in CLUSTER.racks)
    return replace(INSTANCE, cluster=replace(CLUSTER, racks=changed), budget=Budget())


def outage(node, start_s, end_s, notice_s=None):
    """Return the instance with an outage, and the schedule with the energy that it then takes."""
    fault = Outage(node=node, start_s=start_s, end_s=end_s, notice_s=notice_s)
    instance = replace(INSTANCE, faults=Faults(outages=(fault,)))
    return instance, metered(SCHEDULE, instance)


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
    "discard": (INSTANCE, of("short", discarded=True)),
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
            budget=Budget(energy=EnergyBudget(joules=425_000, horizon_s=1000, credit_j=3041)),
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
    "out": outage(1, 12, 14),
    "sleep, out of service": outage(2, 5, 7),
    "drain": outage(1, 70, 75, notice_s=45),  # at 25 s it is empty, at 30 s it has a job
    "failure": (job("short", truth=Truth(work=5, failures=(2.0,))), SCHEDULE),
    "failure, not recorded": outage(1, 20, 25),
    "pool": (INSTANCE, of("short", but(SHORT, ((3, 1),)))),
    "partition": (INSTANCE, of("short", but(SHORT, ((3, 1),), pool=1))),
    "options": (job("short", gpu_types=("Z",)), SCHEDULE),
    "gpus": (job("moved", max_gpus=1), SCHEDULE),
    "clock": (INSTANCE, of("moved", but(FIRST, clock=0.7), SECOND)),
    "batch": (INSTANCE, of("moved", but(FIRST, batch=50), SECOND)),
    "local-batch": (profile(replace(ELASTIC, min_local_batch=50.0)), SCHEDULE),
    "memory": (profile(replace(ELASTIC, memory=Memory(model_gib=17))), SCHEDULE),
    "width": (INSTANCE, of("moved", but(FIRST, width=2), SECOND)),
    "array": (INSTANCE, of("moved", replace(FIRST, array="alone"), SECOND)),
    "span": (INSTANCE, of("moved", FIRST, but(SECOND, span="rack"))),
    "gang": (INSTANCE, of("fixed", but(FIXED, ((0, 1),)))),
    "node": (INSTANCE, of("short", but(SHORT, ((4, 1),)))),
    "node, asleep": (INSTANCE, replace(SCHEDULE, sleeps=(*SLEEPS, (9, 0.0, 1.0)))),
    "duplicate-node": (INSTANCE, of("fixed", but(FIXED, ((0, 1), (0, 1))))),
    "option-power": (INSTANCE, of("short", but(SHORT, power_w=61))),
    "early, by its time": (job("short", eligible_s=106), SCHEDULE),
    "early, by a job": (job("short", after=(After(job="fixed", delay_s=1.0),)), SCHEDULE),
    "early, as is claimed": (INSTANCE, of("short", eligible_s=103.0)),
    "dependency": (INSTANCE, of("short", ended_by="dependency failed")),
    "dependency, which can never be": (job("short", after=(NEVER,)), SCHEDULE),
    "limit": (job("fixed", limit_s=104.9), SCHEDULE),
    "limit, before it": (job("short", limit_s=11), of("short", ended_by="time limit")),
    "limit, there is none": (INSTANCE, of("short", ended_by="time limit")),
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
    both, rest = check_module.__doc__.split("of a site's rules")
    text = both + rest.split("only in schedules")[1]
    listed = re.findall(r"^([a-z-]+) {2,}\S", text, flags=re.MULTILINE)
    assert set(listed) - {"code", "rate"} == {case.partition(",")[0] for case in BROKEN}
