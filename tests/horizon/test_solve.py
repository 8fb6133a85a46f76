"""One round, decided: how a limit may be told, and imports paid before."""

import subprocess
import sys
import time

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from ronda.instances import generate

ROUND = generate.round(12, severity="tight", seed=1)


@pytest.mark.parametrize("limit", [600, 600.0, np.float32(600), "begun", None])
def test_a_limit_may_be_seconds(limit):
    """Or a deadline that has begun, or none: the plan is the same."""
    limit = ronda.Deadline(600.0) if limit == "begun" else limit
    plan = ronda.solve(ROUND, "prices", deadline=limit)
    assert plan.allocations == ronda.solve(ROUND, "prices").allocations
    own = ronda.policy("fifo").plan(ROUND, deadline=limit, seed=0)
    assert own.allocations == ronda.solve(ROUND, "fifo").allocations


class Watching:
    """A policy that keeps the limit it was given, and starts nothing."""

    def plan(self, round, *, deadline, seed, initial=None):
        """Look at the clock."""
        self.limit_s = deadline.limit_s
        return ronda.Plan(policy="watching")


@pytest.mark.parametrize(("limit_s", "left_s"), [(1.0, 1.0 - 12e-5), (3e-4, 2.4e-4), (None, None)])
def test_the_check_of_the_plan_is_within_the_limit(limit_s, left_s, processor_time):
    """12 jobs at 10 us each are kept for it, of a short limit a fifth; by `Embedded` as well."""
    policy = Watching()
    ronda.solve(ROUND, policy, deadline=limit_s)
    assert policy.limit_s == pytest.approx(left_s)
    ronda.Embedded(policy, ROUND.cluster).decide(limit_s)
    assert policy.limit_s == limit_s  # it has no jobs


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        ("5", '"5"'),
        (True, "true"),
        ([5.0], r"\[5.0\]"),
        (0, "0"),
        (-1.5, "-1.5"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
    ],
)
def test_what_is_no_limit_is_refused(limit, found):
    """In one line, here and by `Embedded`."""
    expected = "a Deadline or a finite number above 0 or None"
    with pytest.raises(ronda.InputError, match=f"deadline: found {found}; expected {expected}"):
        ronda.solve(ROUND, "fifo", deadline=limit)
    host = ronda.Embedded("fifo", ROUND.cluster)
    with pytest.raises(ronda.InputError, match=f"deadline_s: found {found}; expected a finite"):
        host.decide(limit)


def test_warm_up_imports_what_a_decision_needs():
    """After it a first decision by the same policy imports nothing more."""
    code = (
        "import sys, ronda; from ronda.instances import generate\n"
        "ronda.warm_up('milp'); before = set(sys.modules)\n"
        "ronda.solve(generate.round(30, severity='tight', seed=1), 'milp')\n"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("given", "found"),
    [(None, "null"), ("round.json", '"round.json"'), (ronda.load("two-jobs"), "an instance")],
)
def test_what_is_no_round_is_refused(given, found):
    """In one line that says what else to call."""
    with pytest.raises(ronda.InputError) as caught:
        ronda.solve(given, "fifo")
    assert str(caught.value).startswith(f"round: found {found}; expected a round (ronda.read")


def test_an_unknown_level_of_knowledge_is_refused():
    """It would count as none of the four."""
    with pytest.raises(ronda.InputError, match='knowledge: found "all"; expected one of "oracle"'):
        ronda.run(ronda.load("two-jobs"), "fifo", knowledge="all")
    with pytest.raises(ronda.InputError, match="policy: found None"):
        ronda.solve(ROUND, None)


def test_little_time_is_enough_to_start_what_was_asked_for(processor_time):
    """1,500 jobs wait for 2,048 GPUs, and there are 0.1 s, of which their options take most.

    As they asked, first come first, the jobs would take all GPUs. Some of these may be left, but
    not most, and the decision is late by at most half of the limit.
    """
    made = generate.round(1500, 2048, "loose", 3)
    states = sorted(made.jobs, key=lambda state: state.job.submit_s)
    waiting = tuple(replace(s, allocation=None, started=False) for s in states)
    round_ = replace(made, running=(), waiting=waiting)
    began_s = time.process_time()
    plan = ronda.solve(round_, "prices", deadline=0.1)
    assert time.process_time() - began_s < 0.15
    assert sum(held.option.gpus for held in plan.allocations.values()) > 1024
    assert ronda.check(round_, plan) == []
