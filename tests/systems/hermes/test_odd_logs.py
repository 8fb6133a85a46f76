"""Logs as trainings really write them: no losses, zeros, explosions; all searchers go on."""

from math import inf

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.horizon.solve import solve
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.job import JobState
from ronda.instances.learning import SweepState, TrainingLog
from ronda.instances.plan import SolutionStatus
from ronda.instances.round import Round
from ronda.systems.hermes.comparators import expected_fall
from ronda.systems.hermes.sweep import Posterior
from ronda.systems.hermes.trials import MOST_DRAWN, reported

SEARCHERS = ("hermes", "round-robin", "slaq", "asha", "hyperband", "hypersched", "sweep", "ones")


def log(*losses, epochs=None, initial_loss=1.0, **fields):
    """Return a log of some losses, or of the last one alone if `epochs` are given."""
    shown = () if epochs else losses
    epochs = epochs or len(losses)
    return TrainingLog(
        epochs=epochs, initial_loss=initial_loss, loss=losses[-1], losses=shown, **fields
    )


LOGS = {
    "accuracy alone": log(0.5, epochs=1, accuracy=0.7),
    "accuracy in percent": log(0.5, epochs=4, accuracy=70.0),
    "more epochs than anybody counts": log(0.5, epochs=2**31 - 1, accuracy=0.7),
    "diverged, accuracy alone": log(None, epochs=3),
    "one report": log(0.5),
    "constant": log(1.0, 1.0, 1.0, 1.0, 1.0),
    "zeros": log(0.0, 0.0, 0.0, 0.0, 0.0),
    "falls to zero": log(0.5, 0.1, 0.0, 0.0),
    "explodes": log(1e-300, 1e300, 1.7e308, 1.7e308, 1e300),
    "tiny": log(5e-324, 1e-300, 5e-324, 5e-324, 5e-324, initial_loss=5e-324),
    "huge": log(1.7e308, 1.6e308, 1.5e308, 1e300, initial_loss=1.7e308),
    "steep": log(1.0, 1e-40, 1e-60, 1e-100, 1e-200, initial_loss=1e300),
    "diverged": log(0.5, None, None),
    "long": log(*(0.9**k for k in range(12_000))),
}


def searching(*logs, gpus=1, reports=10, job_gpus=1, **fields):
    """Return a round in which trials with these logs (None: none) wait for GPUs of one node."""
    made = generate.sweep(len(logs), gpus, 1, generate.Trials(reports=reports))
    waiting = tuple(
        JobState(job=replace(job, truth=None, gpus=job_gpus), since_s=job.submit_s, log=each)
        for job, each in zip(made.jobs, logs, strict=True)
    )
    return Round(
        cluster=made.cluster,
        profiles=made.profiles,
        now_s=1000.0,
        waiting=waiting,
        sweeps={"sweep": SweepState(sweep=made.sweeps["sweep"], **fields)},
    )


ODDEST = ("falls to zero", "explodes", "diverged, accuracy alone")
SHOWN = {"hermes": tuple(LOGS), "ones": ("explodes",)}
"""The logs that a searcher meets each time; in a soak all meet all."""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=() if kind in SHOWN.get(name, ODDEST) else pytest.mark.soak)
        for name in SEARCHERS
        for kind in LOGS
    ],
)
def test_a_trial_runs_whatever_it_has_logged(name, kind):
    """Alone on its GPU, or beside an ordinary trial; ended trials may have logged the same."""
    alone = searching(LOGS[kind], reports=10**5)
    beside = searching(LOGS[kind], log(0.9, 0.8, 0.7), gpus=2, ended={"gone": LOGS[kind]})
    for round_ in (alone, beside):
        plan = solve(round_, name, seed=1)
        assert plan.status is SolutionStatus.FEASIBLE, plan.record.message
        assert plan.allocations or plan.discarded or "diverged" in kind


def test_a_diverged_trial_waits_for_those_that_have_not():
    """Where its GPU would stay free only rules that give trials up leave it."""
    for name in ("hermes", "slaq"):
        round_ = searching(LOGS["diverged, accuracy alone"], LOGS["accuracy alone"])
        last = round_.waiting[1].job.id
        assert set(solve(round_, name).allocations) == {last}, name


@pytest.mark.parametrize("number", [float("nan"), inf, -1.0])
@pytest.mark.parametrize("field", ["initial_loss", "loss", "losses"])
def test_what_is_no_loss_is_refused(field, number):
    """Also from Python, where a file could not say it; the place is named."""
    value = (0.5, number) if field == "losses" else number
    odd = replace(log(0.5, 0.4), **{field: value})
    with pytest.raises(InputError, match=rf"waiting\[0\].log.{field}.*: found"):
        solve(searching(odd), "slaq")


def test_losses_that_were_not_logged_lie_on_a_straight_line():
    """From 1 to 0.4 in three reports: by 0.2 each; who has diverged did so at the last one."""
    assert reported(log(0.4, epochs=3)) == pytest.approx((1.0, 0.8, 0.6, 0.4))
    assert reported(log(None, epochs=2)) == (1.0, 1.0, inf)
    assert reported(log(0.4, None, 0.3)) == (1.0, 0.4, inf, 0.3)
    assert len(reported(log(0.4, epochs=10**9))) == MOST_DRAWN + 1


def test_beliefs_do_not_depend_on_the_unit_of_a_loss():
    """A loss a thousand orders of magnitude larger falls as far, relative to itself."""
    losses = (1.0, 0.6, 0.5, 0.45, 0.42)
    small, large = (tuple(unit * loss for loss in losses) for unit in (1e-200, 1e300))
    assert expected_fall(large) == pytest.approx(expected_fall(losses))
    assert expected_fall(small) == pytest.approx(expected_fall(losses))
    plain, scaled = Posterior([losses]), Posterior([large])
    assert scaled.rho == pytest.approx(plain.rho)
    ends = [belief.final(each, 10) for belief, each in ((plain, losses), (scaled, large))]
    np.testing.assert_allclose(ends[1], np.array(ends[0]) * 1e300)
    beside = Posterior([losses, reported(LOGS["explodes"])])  # one makes no belief infinite
    assert np.isfinite(beside.final(losses, 10)).all()


def test_the_least_loss_goes_first_where_it_is_zero():
    """Relative to a least loss of 0 nothing can be said: the expected final losses themselves."""
    round_ = searching(log(0.9, 0.8, 0.7), log(0.5, 0.1, 0.0), log(0.9, 0.7, 0.6))
    best = round_.waiting[1].job.id
    assert set(solve(round_, "sweep").allocations) == {best}


def test_hypersched_takes_no_gpu_from_trials_that_need_two():
    """Two trials of two GPUs each on two: one waits, and the other keeps both."""
    round_ = searching(*[LOGS["one report"]] * 2, gpus=2, job_gpus=2)
    plan = solve(round_, "hypersched")
    assert [held.option.gpus for held in plan.allocations.values()] == [2]
    assert plan.status is SolutionStatus.FEASIBLE, plan.record.message
