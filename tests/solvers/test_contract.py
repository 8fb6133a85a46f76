"""One behaviour suite over all policies: what anyone may expect of `policy.plan(round)`."""

from functools import cache

import numpy as np
import pytest

from ronda.instances import clock, generate
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.files.json import read, write
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.policies.optimising.prices import Prices
from ronda.solvers.registry import POLICIES, config_of, parameters_of, parse, policy
from ronda.testing import CHECKS, Contract, rounds


@pytest.fixture(params=sorted(POLICIES))
def made(request):
    """Each registered policy with its defaults."""
    return policy(request.param)


SHORT = {
    name: {"generations": 2, "population": 8} for name in ("evolve", "evolve+fused", "genetic")
}
"""Searches that take seconds with their defaults, and keep no more of the contract by that."""


@cache
def contract_of(made):
    """Return the contract that a policy is put to; plans are made once for all tests."""
    return Contract(policy(made.name, **SHORT.get(made.name, {})))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("check_name", CHECKS)
def test_policy_keeps_the_contract(made, check_name, processor_time):
    """What anyone may expect, of every policy."""
    assert made.name in POLICIES
    contract = Contract(made) if check_name == "a_deadline_is_kept" else contract_of(made)
    getattr(contract, check_name)()


class Watch:
    """A clock that stands still at first, and is past every end after some looks."""

    def __init__(self, looks):
        self.looks = looks

    def perf_counter(self):
        """Look at it."""
        self.looks -= 1
        return 0.0 if self.looks >= 0 else float("inf")


@pytest.mark.parametrize("looks", [0, 2, 10, 50])
def test_cut_at_any_moment_no_fewer_jobs_run_than_before(made, looks, monkeypatch):
    """Time is over at some checkpoint of building: what runs keeps running, and more may start."""
    round_, deadline = rounds()["tight"], Deadline(1e6)
    monkeypatch.setattr(clock, "time", Watch(looks))
    plan = made.plan(round_, deadline=deadline, seed=0)
    assert check(round_, plan) == []
    if clock.time.looks < 0:
        assert len(plan.allocations) >= len(round_.held)
    if not looks and clock.time.looks < 0:
        assert (plan.stop, plan.status) == (StopReason.TIME_LIMIT, SolutionStatus.FALLBACK)
        assert plan.allocations.items() >= round_.held.items()


@cache
def crowded():
    """Return a round in which most jobs have to wait."""
    return generate.round(jobs=64, severity="tight", seed=7)


@pytest.mark.parametrize("limit_s", [1e-6, 1e-3, 4e-3, 1e-2])
def test_deadlines_too_short_for_anything_stop_nobody(made, limit_s):
    """Whatever the stage at which time is over, and however slow the machine."""
    round_ = crowded()
    plan = made.plan(round_, deadline=Deadline(limit_s), seed=0)
    assert check(round_, plan) == []
    if plan.stop is StopReason.TIME_LIMIT:
        assert len(plan.allocations) >= len(round_.held)


def test_a_deadline_may_be_given_in_seconds(made):
    """Or left out: the same plan as by a `Deadline`, and no negative one."""
    round_ = rounds()["several pools"]
    given = made.plan(round_, deadline=Deadline(1e6), seed=0)
    assert made.plan(round_, deadline=1e6).allocations == given.allocations
    assert made.plan(round_).allocations == given.allocations
    with pytest.raises(InputError, match="limit_s"):
        made.plan(round_, deadline=-1.0)


def test_plans_are_read_as_they_were_written(made, tmp_path):
    """Details, too, are what a file can hold: what a policy remembers must not change with it."""
    plan = contract_of(made).plan("tight")
    write(plan, tmp_path / "plan.json")
    assert read(tmp_path / "plan.json") == plan


def test_what_is_remembered_outlives_a_plan_that_was_cut(made):
    """What a policy remembers from round to round is not lost for lack of time."""
    round_, first = rounds()["tight"], contract_of(made).plan("tight")
    cut = made.plan(round_, deadline=Deadline(1e-9), seed=0, initial=first)
    if cut.status is SolutionStatus.FALLBACK:
        assert (cut.memory, cut.prices) == (first.memory, first.prices)


def test_unknown_parameter_is_refused_with_the_list_of_known_ones(made):
    """The message names the parameters that there are, or says that there are none."""
    with pytest.raises(InputError) as caught:
        policy(f"{made.name}(colour=red)")
    known = parameters_of(made.name)
    assert all(key in str(caught.value) for key in known)
    assert "colour" in str(caught.value)


def test_parameters_go_round(made):
    """The effective parameters make the same policy again."""
    assert policy(made.name, **config_of(made)) == made


def test_parameters_of_the_objective_are_parameters_of_the_policy():
    """By name in words and in Python; which there are depends on the objective."""
    made = policy("prices(patience=3)")
    assert made == policy("prices", patience=3.0) == Prices(parameters={"patience": 3})
    assert config_of(made) == config_of(policy("prices")) | {"patience": 3.0}
    assert parameters_of("prices", "energy")["eta"] == 0.5
    assert config_of(policy("powerflow-prices(horizon_s=90)"))["horizon_s"] == 90.0
    for spec in ("prices(eta=0.5)", "prices(patience=x)", "prices(patience=-1)", "milp(power=1)"):
        with pytest.raises(InputError, match=r"patience|power"):
            policy(spec)


def test_parameters_of_the_objective_decide():
    """Another horizon, other values: what runs is worth more."""
    round_ = rounds()["tight"]
    worth = [
        policy("prices", horizon_s=each).question(round_, Deadline(), 0).values
        for each in (None, 30.0)
    ]
    assert not np.array_equal(*worth)


@pytest.mark.parametrize(
    ("inside", "value"),
    [("[1, 2]", [1, 2]), ("'b,c'", "b,c"), ("(1, {2: 3})", (1, {2: 3})), ("a-b", "a-b")],
)
def test_parameters_may_hold_commas(inside, value):
    """Inside brackets and quotes they separate nothing; a word stands for itself."""
    assert parse(f"x(a={inside}, b=none)") == ("x", {"a": value, "b": None})


def test_none_is_a_word_where_the_parameter_has_it():
    """As the message says that lists the words."""
    assert policy("fifo(backfill=none)") == policy("fifo")
    assert policy("prices(horizon_s=none)") == policy("prices")


@pytest.mark.parametrize(
    "spec", ["", "milp(", "milp(gap)", "milp(gap=)", "nope", "milp(gap=x)", "milp(gap='0)"]
)
def test_words_that_name_no_policy_are_refused(spec):
    """One line that says what was expected."""
    with pytest.raises(InputError, match="expected"):
        policy(spec)
