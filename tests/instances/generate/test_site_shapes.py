"""Generated shapes, slices and racks: valid, and as severe as asked."""

import pytest

from lab.racked import racked_round
from ronda.horizon.driver import run
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.files.packaged import load
from ronda.instances.rules.validate import validate
from ronda.solvers.registry import policy
from site_drawn import with_shapes, with_slices


def both(subject, severity, seed=1):
    """Return a valid subject with shapes and slices."""
    made = with_slices(with_shapes(subject, seed=seed, severity=severity), severity=severity)
    return validate(made)


@pytest.mark.parametrize("severity", [0.0, 1.0])
def test_shapes_bind_as_severely_as_asked(severity):
    """At 0 no job has a shape; at 1 many do, and plans keep them all."""
    structure = generate.Structure(racks=2, pods=2)
    round_ = both(generate.round(40, 64, seed=3, structure=structure), severity)
    jobs = [state.job for state in round_.jobs]
    shaped = [j for j in jobs if j.one_node or j.exclusive or j.features or j.neighbourhoods]
    assert bool(shaped) is (severity > 0)
    assert both(generate.round(40, 64, seed=3, structure=structure), severity) == round_
    for name in ("prices", "srtf"):
        plan = policy(name).plan(round_, deadline=Deadline(10.0), seed=0)
        assert check(round_, plan) == []
        assert plan.allocations


def test_an_instance_runs_with_shapes():
    """Jobs of gangs in slices, on featured nodes and alone."""
    whole = both(load("gangs"), 0.7)
    assert any(job.exclusive for job in whole.jobs)
    schedule = run(whole, policy("srtf"))
    assert check(whole, schedule) == []
    assert all(outcome.end_s is not None for outcome in schedule.jobs)


def test_racked_rounds_are_full_of_slices():
    """Some run, some wait, and each plan keeps slices in racks."""
    round_ = racked_round(72, seed=2)
    assert racked_round(72, seed=2) == round_
    assert racked_round(72, seed=3) != round_
    assert round_.running
    assert round_.waiting
    assert any(state.job.slices for state in round_.jobs)
    for name in ("prices", "sjf"):
        plan = policy(name).plan(round_, deadline=Deadline(10.0), seed=0)
        assert check(round_, plan) == []
    with pytest.raises(InputError, match="36 or more"):
        racked_round(20)
    with pytest.raises(InputError, match="demand"):
        racked_round(72, 0.0)
