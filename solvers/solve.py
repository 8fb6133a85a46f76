"""Decide one round."""

from ronda.formulations.clock import Deadline
from ronda.instances.check.answer import Ledger
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.problem import show
from ronda.instances.rules.validate import validate
from ronda.solvers.contract import Policy
from ronda.solvers.horizon.guard import answer
from ronda.solvers.registry import as_policy


def solve(
    round: Round,
    policy: Policy | str = "milp",
    *,
    seed: int = 0,
    deadline: Deadline | float | None = None,
    initial: Plan | None = None,
) -> Plan:
    """Decide one round, which is validated first, with one policy.

    The plan is checked. If the policy fails or its plan breaks a rule, what runs keeps running and
    what fits beside it starts: `Plan.status` is then ``fallback``, or ``none`` if no plan keeps
    every limit, and ``record.message`` says why. The same round, seed and initial give the same
    plan, unless the clock cut the search.

    Parameters
    ----------
    policy
        A policy, or its name with parameters as in ``"milp(objective=rank, gap=1e-4)"``.
    deadline
        By when to return: in so many seconds, or a `Deadline` that has begun; None: no limit.
    initial
        A plan to start the search from.
    """
    deadline = Deadline.of(deadline)
    round = validate(_round(round))
    made, ledger = as_policy(policy), Ledger(round.cluster)
    return answer(made, round, ledger, deadline=deadline, seed=seed, initial=initial)


def _round(given: object) -> Round:
    """Return what is a round; refuse anything else."""
    if isinstance(given, Round):
        return given
    found = "an instance" if isinstance(given, Instance) else show(given)
    raise InputError("round", found, "a round (ronda.read reads one; ronda.run drives an instance)")
