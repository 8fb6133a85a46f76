"""The round of the page on formats works under every policy."""

import re
from pathlib import Path

import pytest

import ronda
from ronda.instances.check.checker import check
from ronda.instances.files.json import decode
from ronda.solvers.registry import POLICIES

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"


def documented(kind):
    """Return the page's example of a kind of file."""
    text = re.search(rf"```json {kind}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return decode(text[1].encode(), kind)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_decides_it(policy):
    """The plan breaks no rule, and the job that runs goes on as it is: nothing speaks against."""
    round_ = documented("round")
    plan = ronda.solve(round_, policy)
    assert check(round_, plan) == []
    assert round_.held["one"].goes_on(plan.allocations["one"])
    assert "two" in plan.allocations


def test_its_plan_is_in_order():
    """The plan beside it breaks no rule either."""
    assert check(documented("round"), documented("plan")) == []
