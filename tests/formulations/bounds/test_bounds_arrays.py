"""Bounds of jobs that may share GPUs."""

import pytest

from arrays import Told, array, instance
from ronda.formulations.bounds.clairvoyant import bounds
from ronda.horizon.driver import run
from ronda.instances.job import Costs


def test_arrays_are_within_the_bounds():
    """Seven fused jobs on one GPU beat one after another (140 s), but not the bound."""
    made = instance([20.0] * 7, gpus=1, costs=Costs())
    names = [job.id for job in made.jobs]
    schedule = run(made, Told(lambda r: r.held or array(r, names, "fused", 0, "a")))
    found = bounds(made)
    # In lock-step: 20 (1 + 7/4) = 55 s.
    assert schedule.end_s == pytest.approx(55.0)
    assert found.end_s == pytest.approx(55.0)
    assert found.mean_jct_s <= 55.0 * (1 + 1e-9)
    assert found.energy_j == pytest.approx(schedule.energy.total_j)
