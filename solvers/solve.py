"""Decide one round."""

from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.solvers.contract import Deadline, Policy
from ronda.solvers.registry import policy as make_policy


def solve(
    round: Round,
    policy: Policy | str = "milp",
    *,
    seed: int = 0,
    deadline: Deadline | None = None,
    initial: Plan | None = None,
) -> Plan:
    """Decide one round, which is validated first, with one policy.

    The plan is unchecked: `ronda.check(round, plan)` lists what is wrong with it, if anything. The
    same round, seed and initial give the same plan, unless the clock cut the search.

    Parameters
    ----------
    policy
        A policy, or its name with parameters as in ``"milp(objective=rank, gap=1e-4)"``.
    deadline
        By when to return, ``Deadline(5.0)`` for five seconds; None: no limit.
    initial
        A plan to start the search from.
    """
    round = validate(round)
    made = make_policy(policy) if isinstance(policy, str) else policy
    return made.plan(round, deadline=deadline or Deadline(), seed=seed, initial=initial)
