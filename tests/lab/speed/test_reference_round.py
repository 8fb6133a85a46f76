"""The reference round against numbers worked out by hand."""

import numpy as np
import pytest

from lab.speed.engine import reference
from ronda.instances.errors import InputError

# The first five numbers in (0, 1) of numpy's default generator with seed 0.
U = (0.6369616873214543, 0.2697867137638703, 0.0409735239361947, 0.0165276355285291, 0.8132702392)


def test_one_job_by_hand():
    """A single job: its five numbers are the first five draws, in the order a, w, p0, p1, e."""
    # a  = 0.02 + 0.28 x 0.6369617 = 0.1983493      w  = 0.5 + 2.5 x 0.2697867 = 1.1744668
    # p0 = 60 + 40 x 0.0409735 = 61.638941          p1 = 100 + 150 x 0.0165276 = 102.479145
    # e  = 0.5 + 0.4 x 0.8132702 = 0.8253081
    problem = reference(1)
    rate, (gpus, watts) = problem.value, problem.use.dense()
    assert len(rate) == 56
    # row 7, n = 1, s = 1: w; p0 + p1
    assert (gpus[7], rate[7]) == (1.0, pytest.approx(1.1744668, rel=1e-7))
    assert watts[7] == pytest.approx(164.118086, rel=1e-8)
    # row 15, n = 2, s = 1: 2 w / (1 + a) = 2.3489336 / 1.1983493 = 1.9601410
    assert (gpus[15], rate[15]) == (2.0, pytest.approx(1.9601410, rel=1e-7))
    # row 48, n = 64, s = 0.5: 64 w / (1 + 6 a) = 75.165874 / 2.1900956 = 34.320819, times
    # 0.5^e = exp(-0.6931472 x 0.8253081) = exp(-0.5720600) = 0.5643619: 19.369363
    assert (gpus[48], rate[48]) == (64.0, pytest.approx(19.369363, rel=1e-6))
    # 64 (p0 + p1 x 0.5^2.5) = 64 (61.638941 + 102.479145 x 0.1767767) = 64 x 79.754866
    assert watts[48] == pytest.approx(5104.3114, rel=1e-7)


def test_each_number_is_drawn_for_all_jobs_before_the_next():
    """Two jobs: the draws 3 and 4 are both jobs' w, which is the rate of 1 GPU at full clock."""
    problem = reference(2)
    w = [0.5 + 2.5 * U[2], 0.5 + 2.5 * U[3]]
    assert problem.value[[7, 63]] == pytest.approx(w, rel=1e-9)


def test_options_are_every_gpu_count_at_every_clock():
    """7 GPU counts by 8 even steps of the clock from 0.5 to 1, the same for every job."""
    problem = reference(3, seed=5)
    assert problem.start.tolist() == [0, 56, 112, 168]
    counts = [1, 2, 4, 8, 16, 32, 64]
    assert problem.use.dense()[0].reshape(3, 7, 8).tolist() == [[[n] * 8 for n in counts]] * 3
    # Power per GPU is linear in s^2.5: its differences are p1 times those of s^2.5.
    power = (problem.use.dense()[1] / problem.use.dense()[0]).reshape(3, 7, 8)
    steps = np.diff((0.5 + 0.5 * np.arange(8) / 7) ** 2.5)
    p1 = np.diff(power) / steps
    assert p1 == pytest.approx(np.broadcast_to(p1[:, :1, :1], p1.shape), rel=1e-9)
    assert ((p1 > 100) & (p1 < 250)).all()


@pytest.mark.parametrize(("jobs", "gpus"), [(1, 1), (64, 64), (65, 130), (1024, 2048)])
def test_capacity_is_one_gpu_a_job_up_to_64_jobs_and_two_beyond(jobs, gpus):
    """And 180 W for each GPU."""
    problem = reference(jobs)
    assert problem.names == ("gpus", "power_cap")
    assert problem.capacity.tolist() == [gpus, 180.0 * gpus]
    problem.validate()


def test_seed_decides_the_numbers():
    """Same seed, same round; another seed, another one."""
    assert (reference(10, seed=3).value == reference(10, seed=3).value).all()
    assert (reference(10, seed=3).value != reference(10, seed=4).value).all()


@pytest.mark.parametrize(
    ("arguments", "place"), [((0,), "jobs"), ((-5,), "jobs"), ((4, -1), "seed")]
)
def test_impossible_arguments_are_refused(arguments, place):
    """The error names the argument."""
    with pytest.raises(InputError, match=place):
        reference(*arguments)
