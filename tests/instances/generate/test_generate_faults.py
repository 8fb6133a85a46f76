"""Drawn faults: reproducible, independent of each other, as frequent as asked for, and valid."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.generate import Breakage, broken
from ronda.instances.rules.validate import validate

PLAIN = generate.horizon(400, 512, "balanced", 0)
DAYS = (3 * max(job.submit_s for job in PLAIN.jobs) + 86_400) / 86_400
MUCH = Breakage(node_failures=1.0, drains=1.0, stragglers=0.2, job_failures=0.4, silences=0.1)


def test_the_same_arguments_give_the_same_faults():
    """Another seed gives others."""
    assert broken(PLAIN, MUCH, 1) == broken(PLAIN, MUCH, 1)
    assert broken(PLAIN, MUCH, 1).faults != broken(PLAIN, MUCH, 2).faults


def test_every_kind_has_draws_of_its_own():
    """Without failures of nodes and jobs, what is slow, silent or untrue stays as it was."""
    errors = {"speed_error": 0.1, "power_error": 0.1}
    much = broken(PLAIN, Breakage(node_failures=1.0, stragglers=0.2, silences=0.1, **errors), 3)
    less = broken(PLAIN, Breakage(stragglers=0.2, silences=0.1, job_failures=2.0, **errors), 3)
    assert much.faults.outages
    assert not less.faults.outages
    assert much.faults.stragglers == less.faults.stragglers
    assert much.faults.silences == less.faults.silences
    for one, other in zip(much.jobs, less.jobs, strict=True):
        assert one.truth.throughput == other.truth.throughput
        assert one.truth.power == other.truth.power


def test_faults_are_as_frequent_as_asked_for():
    """Over 64 nodes and 400 jobs the means are within four standard errors."""
    found = broken(PLAIN, MUCH, 5)
    failures = [o for o in found.faults.outages if o.notice_s is None]
    # A node fails once a day of service, and takes an hour to repair.
    expected = 64 * DAYS * 24 / 25
    assert abs(len(failures) - expected) < 4 * np.sqrt(expected)
    slow_s = sum(s.end_s - s.start_s for s in found.faults.stragglers)
    assert slow_s / (64 * DAYS * 86_400) == pytest.approx(0.2, rel=0.15)
    assert {s.speed for s in found.faults.stragglers} <= {k / 1000 for k in range(500, 1001)}
    number = sum(len(job.truth.failures) for job in found.jobs)
    assert abs(number - 160) < 4 * np.sqrt(160)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0, 50), st.floats(0, 50), st.floats(0, 0.9))
def test_what_is_drawn_is_valid(seed, failures, drains, share):
    """No two outages of a node overlap, nor do its slow times, nor silences."""
    breakage = Breakage(
        node_failures=failures, drains=drains, stragglers=share, silences=share, job_failures=3.0
    )
    validate(broken(generate.horizon(4, 16, "loose", 1), breakage, seed))


@pytest.mark.parametrize(("name", "value"), [("slowest", 0.0), ("drains", -1), ("silences", 1)])
def test_what_is_out_of_range_is_refused(name, value):
    """The error names the parameter."""
    with pytest.raises(InputError, match=name):
        Breakage(**{name: value})
