"""The way from `ronda.solve` to an algorithm is short enough to be read on one screen."""

import sys

import pytest

import ronda
from ronda.solvers.exact import highs
from ronda.solvers.prices.core import CoreSearch


@pytest.mark.parametrize(
    ("policy", "owner", "name", "inside"),
    [("prices", CoreSearch, "run", 1), ("milp", highs, "highs_of", 0)],
)
def test_few_functions_stand_between_a_round_and_the_algorithm(
    monkeypatch, policy, owner, name, inside
):
    """At most 14, from what `solve` is wrapped in to the algorithm itself.

    `inside` is 1 where the watched function is the algorithm, 0 where it is what that calls first.
    """
    algorithm, ways = getattr(owner, name), []

    def watched(*args, **kwargs):
        frame, way = sys._getframe(1), []
        while frame is not None:
            if frame.f_globals.get("__name__", "").startswith("ronda."):
                way.append(frame.f_code.co_name)
            frame = frame.f_back
        ways.append(way[::-1])
        return algorithm(*args, **kwargs)

    monkeypatch.setattr(owner, name, watched)
    ronda.solve(ronda.load("round-power"), policy)
    assert ways
    assert len(ways[0]) + inside <= 14, " > ".join(ways[0])
    assert "solve" in ways[0]
