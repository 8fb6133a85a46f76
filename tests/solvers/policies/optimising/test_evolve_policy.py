"""The evolve policy: moves in view, repeatable, in time, parameters."""

import msgspec
import numpy as np
import pytest

from ronda.formulations.genes.move_losses import move_losses
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers.decision.plan import Question
from ronda.solvers.policies.optimising.genetic import Evolve, Genetic
from ronda.solvers.registry import policy as by_name
from settled import settled, worth_of

QUICK = Evolve(population=16, generations=10)


def decide(round_, policy=QUICK, *, seed=0, initial=None, limit_s=None):
    """Return the policy's plan."""
    return policy.plan(round_, deadline=Deadline(limit_s), seed=seed, initial=initial)


def bare(plan):
    """Return a plan without its times."""
    return msgspec.structs.replace(plan, record=None)


@pytest.fixture(scope="module", name="scattered")
def _scattered():
    return settled(96, 96, "tight", 1)


def test_counts_moves_and_beats_who_does_not(scattered):
    """Where large jobs must push small ones out, the plan is worth more than the genetic one's.

    The objective is the value of what is placed less what the moves listed cost, computed here
    from the plan alone.
    """
    question = Question.of(scattered, "rank")
    table, worth = question.table, question.values
    plan = decide(scattered, Evolve(gap=0, generations=40))
    other = decide(scattered, Genetic())
    assert check(scattered, plan) == []
    assert plan.objective == pytest.approx(worth_of(question, plan))
    assert plan.objective >= worth_of(question, other) - 1e-9
    assert plan.objective <= plan.bound
    if plan.details.moved:
        losses = move_losses(scattered, table, worth)
        ids = [state.job.id for state in table.jobs]
        lost = sum(losses[ids.index(job)] for job in plan.details.moved)
        assert plan.details.move_loss == pytest.approx(lost)


@pytest.mark.parametrize("severity", ["loose", "balanced", "tight"])
def test_plans_are_valid_and_near_the_bound(severity):
    """Within 1 % of the dual bound on 48 elastic jobs."""
    round_ = generate.round(jobs=48, severity=severity, seed=4)
    plan = decide(round_, Evolve(generations=30))
    assert check(round_, plan) == []
    assert plan.gap < 0.01


def test_same_seed_same_plan(scattered):
    """Twice the same, but for the times; another seed searches elsewhere."""
    never = Evolve(population=16, generations=6, gap=0)
    one, two, other = (decide(scattered, never, seed=s) for s in (3, 3, 4))
    assert bare(one) == bare(two)
    worths = [[worth for _, worth in plan.record.incumbents] for plan in (one, other)]
    assert worths[0] != worths[1] or one.objective == other.objective


def test_all_its_objectives_are_those_of_any_option_table():
    """Every objective that others know can be evolved."""
    round_ = generate.round(jobs=16, severity="tight", seed=2)
    for objective in ("rank", "density", "snapshot"):
        plan = decide(round_, Evolve(objective=objective, population=16, generations=5))
        assert plan.details.objective == objective
        assert 0 <= plan.gap < 0.1


def test_stops_in_time():
    """Without any other limit the deadline ends the search, and it has a plan."""
    endless = Evolve(generations=10**9, stagnation=10**9, gap=0)
    round_ = generate.round(jobs=128, severity="tight", seed=1)
    plan = decide(round_, endless, limit_s=0.7)
    assert plan.stop is StopReason.TIME_LIMIT
    assert check(round_, plan) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"population": 3},
        {"generations": 0},
        {"exchanges": -1},
        {"objective": "rnak"},
        {"gap": 2.0},
    ],
)
def test_parameters_out_of_range_are_refused(wrong):
    """Each is named with its value in a one-line error when the policy is made."""
    name, value = next(iter(wrong.items()))
    with pytest.raises(InputError, match=name) as caught:
        Evolve(**wrong)
    assert str(value).rstrip(".0") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_exchanges_find_more():
    """With hardly any generations plans are worth more with exchanges than without, on average.

    1.001 times as much over these eight rounds; four of them gain nothing.
    """
    gains = []
    for seed in range(1, 9):
        round_ = generate.round(jobs=40, severity="tight", seed=seed)
        without, with_them = (
            decide(round_, Evolve(population=8, generations=2, gap=1e-9, exchanges=n)).objective
            for n in (0, 4)
        )
        gains.append(with_them / without)
    assert np.mean(gains) > 1.0003


def test_is_found_by_its_name():
    """The registry makes it from text."""
    assert by_name("evolve(exchanges=1)") == Evolve(exchanges=1)
