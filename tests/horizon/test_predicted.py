"""What a predictor tells of a job while it runs."""

import numpy as np
import pytest

from ronda.formulations.prediction.sizes import Sizes
from ronda.horizon.predicted import first
from ronda.instances.job import Allocation, Job, JobState, Option


def state(since_s):
    """Return a job that progresses at rate 2 from some time on."""
    option = Option(pool=0, gpus=1, rate=2.0)
    job = Job(id="a", submit_s=0, profile="p")
    return JobState(
        job=job, since_s=since_s, allocation=Allocation(option=option, placement=((0, 1),))
    )


def test_a_size_is_what_remains_of_those_that_were_told():
    """10, 20 or 60 with equal mass: 30; beyond 10 it is 40, beyond 20 it is 60, then doubled."""
    told = first(Sizes(np.array([10.0, 20.0, 60.0]), np.ones(3) / 3))
    runs = state(100.0)
    for now_s, work in (
        (0, 30),
        (104, 30),
        (105, 40),
        (110, 60),
        (129, 60),
        (130, 120),
        (160, 240),
    ):
        told = told.at(now_s, runs)
        assert told.estimate.work == pytest.approx(work), now_s
    assert told.until_s == pytest.approx(220.0)  # 120 done at 160 s, 240 at rate 2 then


def test_an_estimate_stays_until_the_next_size_is_reached():
    """It says itself until when: 10 of work at rate 2 from 100 s on."""
    told = first(Sizes(np.array([10.0, 20.0]), np.ones(2) / 2)).at(0.0, state(100.0))
    assert told.until_s == pytest.approx(105.0)
    waits = JobState(job=Job(id="a", submit_s=0, profile="p"), since_s=0.0)
    assert told.at(0.0, waits).until_s == np.inf
