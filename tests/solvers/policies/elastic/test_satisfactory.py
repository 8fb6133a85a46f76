"""Minimum satisfactory shares by hand: 1, 2 or 4 GPUs at rates 1, 2 and 4."""

import numpy as np

from ronda.solvers.policies.elastic.elasticflow_like import FutureGpus

GPUS, RATE = (1, 2, 4), (1.0, 2.0, 4.0)


def test_the_smallest_level_that_meets_the_deadline():
    """10 s for 10 units: one GPU. 20 units more: two. 25 units on the last one: not possible."""
    future = FutureGpus(4, [10.0, 10.0, 10.0])
    assert future.fill(10.0, 10.0, GPUS, RATE) == 0
    assert future.free.tolist() == [3]
    assert future.fill(10.0, 20.0, GPUS, RATE) == 1
    assert future.free.tolist() == [1]
    assert future.fill(10.0, 25.0, GPUS, RATE) is None
    assert future.free.tolist() == [1]


def test_as_late_as_possible_at_the_smallest_level():
    """Due in 20 s with 10 units of work: one GPU from 10 s on suffices, and none is booked before.

    With 15 units one GPU is needed in both slots. Slots of 5 and 15 s with 25 units: two GPUs give
    30 units from 5 s on; before, the level below is booked, which then leaves 20.
    """
    assert FutureGpus(4, [10.0, 20.0]).fill(20.0, 10.0, GPUS, RATE) == -1
    assert FutureGpus(4, [10.0, 20.0]).fill(20.0, 15.0, GPUS, RATE) == 0
    future = FutureGpus(4, [5.0, 20.0])
    assert future.fill(20.0, 25.0, GPUS, RATE) == 0
    assert future.free.tolist() == [3, 2]


def test_what_earlier_jobs_took_is_not_there():
    """All four GPUs are taken until 10 s: 40 units by 20 s need all four afterwards."""
    future = FutureGpus(4, [10.0, 20.0])
    assert future.fill(10.0, 40.0, GPUS, RATE) == 2
    assert future.fill(20.0, 40.0, GPUS, RATE) == -1
    assert future.free.tolist() == [0, 0]


def test_deadlines_are_rounded_down_to_the_slots_there_are():
    """With one slot, to the first deadline: a later one counts as that, an earlier one as none."""
    future = FutureGpus(4, [10.0, 20.0], most_slots=1)
    assert future.fill(20.0, 40.0, GPUS, RATE) == 2
    assert future.fill(5.0, 1.0, GPUS, RATE) is None


def test_work_that_fits_to_the_last_bit_is_booked():
    """Sums in another order differ by rounding: for some of these the last slot falls short."""
    for seed in range(50):
        ends = np.sort(np.random.default_rng(seed).uniform(1.0, 1e4, 64))
        work = min(float(np.diff(ends, prepend=0.0).sum()), float(ends[-1]))
        future = FutureGpus(1, ends.tolist())
        assert future.fill(float(ends[-1]), work, (1,), (1.0,)) in (0, None)


def test_more_gpus_that_are_slower_are_no_help():
    """Four GPUs are free, but two are fastest: 15 units in 10 s are met by them, 16 by none."""
    gpus, rate = (1, 2, 4), (1.0, 1.5, 1.2)
    future = FutureGpus(4, [10.0])
    assert future.fill(10.0, 15.0, gpus, rate) == 1
    assert future.free.tolist() == [2]
    assert FutureGpus(4, [10.0]).fill(10.0, 16.0, gpus, rate) is None
