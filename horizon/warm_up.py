"""Pay for imports before the first decision."""

from ronda.horizon.solve import solve
from ronda.instances import generate
from ronda.solvers.contract import Policy

LIMIT_S = 30.0
"""Most seconds of a decision that only warms up."""


def warm_up(policy: Policy | str = "prices") -> None:
    """Decide a small round, so that all that a policy imports and makes once is there.

    The first decision of a process otherwise pays for that: 0.3 to 2 s, out of its limit. What
    the policy answers, or raises, is not looked at.
    """
    solve(generate.round(4, seed=0), policy, deadline=LIMIT_S)
