"""Schedules against instances: pauses owed, teardown, pieces of a run, hand-overs, capacity."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings
from msgspec.structs import replace

from hand_schedule import FIRST, FIXED, INSTANCE, SCHEDULE, SECOND, SHORT, SLEEPS, metered, of
from ronda.instances.budget import Budget
from ronda.instances.check.checker import check
from ronda.instances.job import Costs, Job, Truth
from ronda.instances.schedule import JobOutcome


def racks_off(instance):
    """Return an instance without rack caps."""
    free = tuple(replace(rack, power_cap_w=None) for rack in instance.cluster.racks)
    return replace(instance, cluster=replace(instance.cluster, racks=free))


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


@settings(max_examples=50, deadline=None)
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
