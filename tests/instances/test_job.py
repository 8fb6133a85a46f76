"""A job's state as it starts, stops and resumes: hand-made."""

import pytest
from msgspec.structs import replace

from ronda.instances.job import Allocation, Job, JobState, Option


@pytest.mark.parametrize("width", [1, 2])
def test_a_stop_and_a_start_by_hand(width):
    """Eight GPUs for 90 s at 3 units a second after a pause; in an array half of them are its."""
    option = Option(pool=0, gpus=8, rate=3.0, power_w=1.0, width=width)
    held = Allocation(option=option, placement=((0, 8),))
    waits = JobState(job=Job(id="a", profile="p", gpus=8, submit_s=5.0), since_s=5.0)
    runs = waits.holding(held, 10.0, 20.0, ready_s=20.0)
    assert (runs.since_s, runs.held_s, runs.pause_s) == (40.0, 10.0, 20.0)
    assert (runs.started, runs.restarts) == (True, 0)
    assert runs.gpu_s_at(100.0) == 720.0 / width
    stopped = runs.stopped(100.0, runs.done_at(100.0))
    assert (stopped.allocation, stopped.since_s, stopped.done) == (None, 100.0, 180.0)
    assert (stopped.gpu_s, stopped.owed_s, stopped.pause_s) == (720.0 / width, 0.0, None)
    assert stopped.gpu_s_at(500.0) == stopped.gpu_s
    assert stopped.stopped(500.0, 0.0) is stopped
    fewer = Allocation(option=replace(option, width=1), placement=((0, 8),))
    assert runs.narrowed(fewer, 35.0, 0.0).since_s == 40.0  # its pause goes on
    narrow = runs.narrowed(fewer, 100.0, 180.0)
    assert (narrow.since_s, narrow.held_s, narrow.done) == (100.0, 100.0, 180.0)
    assert (narrow.gpu_s, narrow.restarts) == (720.0 / width, 0)
    early = runs.stopped(35.0, 0.0)
    assert early.owed_s == 5.0
    again = early.holding(held, 50.0, 10.0)
    assert (again.restarts, again.owed_s) == (1, 0.0)
    assert again.gpu_s_at(60.0) == early.gpu_s + 80.0 / width
