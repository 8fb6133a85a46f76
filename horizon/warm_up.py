"""Imports before the first decision."""

from ronda.horizon.solve import solve
from ronda.instances import generate
from ronda.solvers.contract import Policy

LIMIT_S = 30.0
"""The time limit of a decision that only warms up, in seconds."""


def warm_up(policy: Policy | str = "prices") -> None:
    """Decide a small round, so that all one-time imports and objects of a policy exist.

    Otherwise the first decision of a process takes 0.3 to 2 s of its limit for them. The policy's
    answer, or exception, is ignored.
    """
    solve(generate.round(4, seed=0), policy, deadline=LIMIT_S)
