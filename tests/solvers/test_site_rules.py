"""The rules of a site, two or three together: engines against every plan of tiny rounds."""

import os

import pytest

from every_site_plan import best_plan
from ronda.formulations.positions.variables import NODE_SHARE
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.solvers.decision.by_positions import _Exact
from ronda.solvers.decision.plan import Question
from ronda.solvers.registry import policy
from site_rounds import OBJECTIVE, RULES, drawn_rules, tiny
from tests.helpers.cut_rounds import drawn

ROUNDS, PARTS = 200 if os.environ.get("SOAK") else 30, 10
CLOSE = 1e-4
"""The gap that `milp` proves by default."""


def asked(name):
    """Return a policy with the objective of these tests."""
    inside = ",".join(f"{key}={value}" for key, value in OBJECTIVE.items())
    return policy(f"{name[:-1]},{inside})" if name.endswith(")") else f"{name}({inside})")


@pytest.mark.parametrize("part", range(PARTS))
def test_no_plan_is_better_and_no_bound_is_lower(part, monkeypatch):
    """Exact: the best plan. Aggregate and prices: valid plans, no certificate below the best.

    In half of the rounds the exact model is solved even where quick placement closes the gap.
    """
    if part % 2:
        monkeypatch.setattr(_Exact, "kept", lambda run, choice: False)
    for seed in range(part, ROUNDS, PARTS):
        rules = drawn_rules(seed, tuple(RULES))
        compare(tiny(seed, rules))


def compare(round_):
    """Hold the plans of three engines against every plan of a round."""
    parameters = {"power": OBJECTIVE["power"]}
    question = Question.of(round_, OBJECTIVE["objective"], parameters=parameters)
    best = best_plan(question)
    rounding = 1e-6 * max(1.0, abs(best.worth))
    for name in ("milp(placement=exact)", "milp", "prices"):
        plan = asked(name).plan(round_, deadline=Deadline(), seed=0)
        assert check(round_, plan) == [], name
        exact = name == "milp(placement=exact)"
        worth = best.after_moves if exact else best.worth
        nodes = NODE_SHARE * max(abs(question.values.max()), 1.0) * 4 if exact else 0.0
        assert plan.objective <= worth + rounding, name
        assert plan.bound >= worth - rounding - nodes, name
        if exact:
            assert plan.objective >= worth - CLOSE * abs(worth) - nodes - rounding


@pytest.mark.parametrize("seed", range(0, 100, 9))
def test_parts_of_gpus_likewise(seed, monkeypatch):
    """Parts, fractions and whole GPUs on numbered GPUs, some beside parts that stay."""
    if seed % 2:
        monkeypatch.setattr(_Exact, "kept", lambda run, choice: False)
    compare(drawn(seed))
