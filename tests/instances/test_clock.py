"""The clock of a decision: how long work takes on a machine that others share."""

import time

from ronda.instances.clock import SLOWEST, Deadline


def test_work_takes_longer_where_the_processor_is_elsewhere():
    """Asleep for 20 ms a process works for a small part of them, whenever its time is over."""
    deadline = Deadline(10.0)
    time.sleep(0.02)
    assert 2.0 < deadline.paced(1.0) <= SLOWEST
    assert 2.0 < deadline.sooner(1.0).paced(1.0) <= SLOWEST


def test_work_never_takes_less_than_its_time():
    """However much a process works at once."""
    deadline = Deadline(10.0)
    sum(range(100_000))
    assert deadline.paced(0.5) >= 0.5
