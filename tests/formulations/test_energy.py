"""The energy ahead: shares of the window, by hand and against a simulation second by second."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ronda.formulations.watts import left_w, may_use_j, seconds_left, share
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.round import Round

GPU = GpuType(name="GPU", memory_gib=16.0, idle_w=0.0)


def a_round(energy_j, banked_j=None, sustained_w=None, window_s=60.0, host_idle_w=0.0):
    """Return a round of one node without jobs."""
    return Round(
        cluster=uniform_cluster(GPU, 1, 4, host_idle_w=host_idle_w, sleep_w=host_idle_w),
        profiles={},
        energy_j=energy_j,
        banked_j=banked_j,
        sustained_w=sustained_w,
        window_s=window_s,
    )


def shares(round_, *seconds):
    """Return shares as a list."""
    return share(round_, np.array(seconds)).tolist()


def test_energy_that_is_all_there_is_charged_for_as_long_as_it_is_drawn():
    """10 s of a window of 60 s are a sixth, whatever the cluster draws besides; 60 s are all."""
    assert shares(a_round(6000.0), 10, 60, 90, np.inf) == pytest.approx([1 / 6, 1, 1, 1])
    assert shares(a_round(6000.0, host_idle_w=30.0), 10, 60) == pytest.approx([1 / 6, 1])


def test_energy_that_comes_evenly_is_charged_for_the_whole_window():
    """With nothing banked 50 W are 50 W, for 10 s or for ever."""
    assert shares(a_round(3000.0, banked_j=0.0), 10, 30, 60) == [1.0, 1.0, 1.0]


def test_a_short_job_may_draw_what_is_banked():
    """2,500 J and 50 W: 100 W for 60 s, or 300 W for 10 s: a watt of these is a third of one."""
    round_ = a_round(6000.0 - 500.0, banked_j=2500.0)
    most_w = (2500.0 + 50.0 * 10.0) / 10.0
    assert shares(round_, 10) == pytest.approx([5500.0 / 60.0 / most_w])


def test_what_runs_for_longer_than_the_window_is_there_first():
    """Of 2,000 J and 66.7 W a job of 20 W takes 20 W for the window, if it lasts that long.

    By 10 s 2,667 J, less 200, may be used, by 60 s 6,000 J, less 1,200.
    """
    job = Job(id="a", submit_s=0, profile="p", estimate=Estimate(work=90.0))
    option = Option(pool=0, gpus=1, batch=1.0, rate=1.0, power_w=20.0)
    for work, held_w in ((90.0, 20.0), (59.0, 0.0)):
        state = JobState(
            job=replace(job, estimate=Estimate(work=work)),
            since_s=0.0,
            allocation=Allocation(option=option, placement=((0, 1),)),
        )
        round_ = replace(a_round(6000.0, banked_j=2000.0), running=(state,))
        most_w = (2000.0 + 4000.0 / 6 - 10 * held_w) / 10
        assert shares(round_, 10) == pytest.approx([(6000.0 / 60.0 - held_w) / most_w])


def test_what_may_be_used_goes_on_after_the_window():
    """1,000 J and 50 W for 60 s, then 40 W with no more than the 1,000 J besides."""
    round_ = a_round(4000.0, banked_j=1000.0, sustained_w=40.0)
    found = may_use_j(round_, np.array([0.0, 30.0, 60.0, 100.0])).tolist()
    assert found == pytest.approx([1000.0, 2500.0, 4000.0, 5000.0])


def test_a_job_of_unknown_size_lasts():
    """120 units at 2 a second last 60 s; without an estimate nobody knows."""
    job = Job(id="a", submit_s=0, profile="p", estimate=Estimate(work=120.0))
    state = JobState(job=job, since_s=0.0)
    option = Option(pool=0, gpus=1, batch=1.0, rate=2.0, power_w=100.0, teardown_s=1.0)
    assert seconds_left(a_round(1.0), state, option) == 61.0
    unknown = replace(state, job=replace(job, estimate=None))
    assert seconds_left(a_round(1.0), unknown, option) == np.inf


JOBS = st.lists(
    st.tuples(st.floats(1, 300), st.integers(1, 90)), min_size=1, max_size=6
)  # watts, seconds


@settings(max_examples=80)
@given(
    jobs=JOBS, energy_j=st.floats(3000, 12_000), part=st.floats(0, 1), host=st.sampled_from([0, 20])
)
def test_what_is_left_is_what_a_simulation_leaves(jobs, energy_j, part, host):
    """Second by second, for the window: the least surplus over the time, or nothing to spare."""
    round_ = a_round(energy_j, banked_j=part * energy_j, host_idle_w=float(host))
    watts, seconds = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    left = left_w(round_, float(host), watts, seconds)
    used_j, least = 0.0, np.inf
    for t in range(1, 61):
        used_j += host + sum(w for w, s in jobs if s >= t)
        allowed = part * energy_j + (1 - part) * energy_j * t / 60
        least = min(least, (allowed - used_j) / t)
    assert left == pytest.approx(least, abs=1e-6 * energy_j)


@settings(max_examples=80)
@given(jobs=JOBS, energy_j=st.floats(3000, 12_000), part=st.floats(0, 1))
def test_jobs_within_their_shares_overdraw_at_no_time(jobs, energy_j, part):
    """Jobs that fill the window's watts by their shares leave nothing below 0."""
    round_ = a_round(energy_j, banked_j=part * energy_j)
    watts, seconds = (np.array(column, dtype=float) for column in zip(*jobs, strict=True))
    charged = float((watts * share(round_, seconds)).sum())
    watts *= energy_j / 60.0 / charged
    assert left_w(round_, 0.0, watts, seconds) >= -1e-9 * energy_j


def test_a_cap_holds_at_once():
    """Of 500 W, 300 W are drawn for a second: 200 W are left, however short that is."""
    round_ = replace(a_round(60_000.0), power_cap_w=500.0)
    assert left_w(round_, 0.0, np.array([300.0]), np.array([1.0])) == pytest.approx(200.0)
