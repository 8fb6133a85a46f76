"""The evolve policy: moves in view, Pareto sets, checkpoints of rounds, parameters."""

import msgspec
import numpy as np
import pytest

from ronda.bench.study.evolve_quality import settled, worth_of
from ronda.formulations.genes.neighbourhood import move_losses
from ronda.formulations.objectives.forms import values
from ronda.formulations.options.build import build
from ronda.instances import generate
from ronda.instances.check.answer import check
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers.contract import Deadline
from ronda.solvers.genetic.front import non_dominated
from ronda.solvers.policies.optimising.evolve import Evolve
from ronda.solvers.policies.optimising.genetic import Genetic
from ronda.solvers.registry import policy as by_name

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
    table = build(scattered)
    worth = values(scattered, table)
    plan = decide(scattered, Evolve(gap=0, generations=40))
    other = decide(scattered, Genetic())
    assert check(scattered, plan) == []
    assert plan.objective == pytest.approx(worth_of(scattered, table, worth, plan))
    assert plan.objective >= worth_of(scattered, table, worth, other) - 1e-9
    assert plan.objective <= plan.bound
    if plan.details.get("moved"):
        losses = move_losses(scattered, table, worth)
        ids = [state.job.id for state in table.jobs]
        lost = sum(losses[ids.index(job)] for job in plan.details["moved"])
        assert plan.details["migration_loss"] == pytest.approx(lost)


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
        assert plan.details["objective"] == objective
        assert 0 <= plan.gap < 0.1


def test_stops_in_time():
    """Without any other limit the deadline ends the search, and it has a plan."""
    endless = Evolve(generations=10**9, stagnation=10**9, gap=0)
    round_ = generate.round(jobs=128, severity="tight", seed=1)
    plan = decide(round_, endless, limit_s=2.0)
    assert plan.stop is StopReason.TIME_LIMIT
    assert check(round_, plan) == []


def test_checkpoint_of_another_round_is_refused(tmp_path, scattered):
    """The file keeps the search of its round; both rounds are named, and parameters too."""
    path = tmp_path / "kept.json.zst"
    given = {"checkpoint": str(path), "population": 16, "gap": 0}
    first = decide(scattered, Evolve(generations=3, **given))
    rest = decide(scattered, Evolve(generations=6, **given))
    whole = decide(scattered, Evolve(generations=6, population=16, gap=0))
    assert first.details["generations"] == 3
    assert bare(rest) == bare(whole)
    other = settled(96, 96, "tight", 2)
    with pytest.raises(InputError) as caught:
        decide(other, Evolve(generations=6, **given))
    assert scattered.name in caught.value.found
    assert other.name in caught.value.expected
    with pytest.raises(InputError, match="population 16"):
        decide(scattered, Evolve(generations=6, **given | {"population": 20}))
    with pytest.raises(InputError, match="exchanges 2"):
        decide(scattered, Evolve(generations=6, exchanges=0, **given))


def test_checkpoint_that_names_a_finished_job_is_refused(tmp_path, scattered):
    """A job that was live when the search began has finished since: it is named."""
    path = tmp_path / "kept.json"
    policy = Evolve(generations=2, population=16, gap=0, checkpoint=str(path))
    decide(scattered, policy)
    jobs = msgspec.json.decode(path.read_bytes())["jobs"]
    gone = next(s.job.id for s in scattered.waiting if s.job.id in jobs)
    later = msgspec.structs.replace(
        scattered, waiting=tuple(s for s in scattered.waiting if s.job.id != gone)
    )
    with pytest.raises(InputError, match=f"a genome that names job '{gone}'"):
        decide(later, policy)


def test_pareto_plans_do_not_beat_each_other():
    """By plain loops over objective, watts and changed jobs; all are valid, the ends differ."""
    round_ = generate.round(jobs=24, severity="balanced", seed=1)
    plans = QUICK.pareto(round_, deadline=Deadline(), seed=0)
    scores = []
    for plan in plans:
        assert check(round_, plan) == []
        watts = sum(a.option.power_w for a in plan.allocations.values())
        changes = sum(plan.allocations.get(s.job.id) is not s.allocation for s in round_.running)
        assert (plan.details["power_w"], plan.details["changes"]) == (watts, changes)
        scores.append((plan.objective, -watts, -changes))
    assert len(plans) > 3
    for one in scores:
        for two in scores:
            assert one is two or not all(a >= b for a, b in zip(one, two, strict=True))
    objectives = [plan.objective for plan in plans]
    assert objectives == sorted(objectives, reverse=True)
    assert min(-s[1] for s in scores) < 0.5 * max(-s[1] for s in scores)
    again = QUICK.pareto(round_, deadline=Deadline(), seed=0)
    assert [bare(p) for p in again] == [bare(p) for p in plans]


def test_non_dominated_is_the_definition():
    """(2, 1, 1) beats (1, 1, 1) and (2, 2, 1); (3, 5, 0) and (0, 0, 9) are beaten by none."""
    scores = [(1, 1, 1), (2, 1, 1), (2, 2, 1), (3, 5, 0), (2, 1, 1), (0, 0, 9)]
    assert non_dominated(np.array(scores, dtype=float)).tolist() == [
        False,
        True,
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"population": 3},
        {"generations": 0},
        {"mutation": 1.5},
        {"crossover": -0.1},
        {"exchanges": -1},
        {"islands": 0},
        {"workers": -1},
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


def test_is_found_by_its_name():
    """The registry makes it from text; a checkpoint's name must say a known compression."""
    assert by_name("evolve(islands=2, exchanges=1)") == Evolve(islands=2, exchanges=1)
    with pytest.raises(InputError, match=r"\.json"):
        Evolve(checkpoint="kept.txt")
