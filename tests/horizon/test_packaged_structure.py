"""Packaged instances with structure: their reference values are what the policies do."""

import pytest

from ronda.horizon.driver import run
from ronda.instances.check.checker import check
from ronda.instances.files.packaged import load
from ronda.instances.outcome.metrics import summarise


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
@pytest.mark.parametrize("name", ["gangs", "philly-batches", "pods-mixed", "two-tenants"])
def test_reference_values(name, policy):
    """The mean JCT is that of the file, above the bound, and the schedule breaks no rule."""
    instance = load(name)
    schedule = run(instance, policy, time_limit_s=None)
    assert check(instance, schedule) == []
    mean_jct_s = summarise(instance, schedule)["mean_jct_s"]
    assert mean_jct_s == pytest.approx(instance.reference[policy]["mean_jct_s"], abs=0.1)
    assert mean_jct_s > instance.reference["clairvoyant bound"]["mean_jct_s"]
