"""Generated time limits, order, job arrays and announced outages: valid, and as severe as asked."""

import pytest

from ronda.horizon.driver import run
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.files.packaged import load
from ronda.instances.outcome.metrics import summarise
from ronda.instances.rules.validate import validate
from site_drawn import (
    with_announced_outages,
    with_job_arrays,
    with_order,
    with_time_limits,
)

ALL = (with_time_limits, with_order, with_job_arrays, with_announced_outages)


def all_of(subject, seed, severity):
    """Put all four rules on an instance or a round."""
    for rule in ALL:
        subject = validate(rule(subject, seed=seed, severity=severity))
    return subject


@pytest.mark.parametrize("severity", [0.0, 0.5, 1.0])
def test_all_policies_may_run_under_all_of_them(severity):
    """The checker finds nothing; at 0 nothing binds, and at 1 much does."""
    whole = load("philly-energy-small") if severity == 0.5 else load("gangs")
    given = all_of(whole, 1, severity)
    schedule = run(given, "sjf")
    assert check(given, schedule) == []
    assert not any(record.violations for record in schedule.rounds)
    figures = summarise(given, schedule)
    if severity == 0.0:
        assert figures["over_limit_jobs"] == 0
        assert not any(job.after for job in given.jobs)
        assert given.faults == whole.faults
    if severity == 1.0:
        assert figures["over_limit_jobs"] > 0.1 * len(given.jobs)
        assert figures["unrun_jobs"] > 0
        assert given.faults.outages


def test_rounds_have_them_as_well():
    """Some nodes leave, and some jobs wait."""
    made = generate.round(40, seed=2)
    given = all_of(made, 3, 1.0)
    assert given.leaving
    assert max(given.site.job_arrays.values()) >= 1
    assert with_order(made, seed=3, severity=0.0) == made
    assert all_of(made, 3, 1.0) == given
