"""The best different plans of one round."""

from typing import Annotated

import msgspec

from ronda.horizon.solve import ROUND
from ronda.instances.arguments import checked
from ronda.instances.base import Index, Positive
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.solvers.contract import Policy
from ronda.solvers.exact.backends import Writer, logged
from ronda.solvers.greedy.as_one import seen_by
from ronda.solvers.policies.optimising.milp import Modelled
from ronda.solvers.registry import as_policy

ABLE = ("milp", "cp-sat", "sia-like")
"""Policies that can: they solve one model of the whole round."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Number = Annotated[int, msgspec.Meta(ge=1, le=1000)]


@checked
def alternatives(
    round: Annotated[Round, ROUND],
    policy: Policy | str = "milp",
    *,
    number: Number = 3,
    within: Share = 0.01,
    seed: Index = 0,
    deadline: Deadline | Positive | None = None,
    log: Writer | None = None,
) -> list[Plan]:
    """Return the best different plans of a round, the best first; none if there is no plan.

    Plans differ if at least one job has another option, or runs in one of them only; options that
    another one of the job beats do not count (`ronda.questions.different`). All pass
    `ronda.check`, and no job runs in a plan that its choice leaves out.

    Parameters
    ----------
    policy
        ``milp``, ``cp-sat`` or ``sia-like`` with parameters; not ``placement=exact``, nor by parts.
    number
        How many at most; fewer if there are no more, or time is up.
    within
        The share of its objective by which a plan may fall short of the best.
    deadline
        By when to return: in so many seconds, or a `Deadline` that has begun; None: no limit.
    log
        Where the solver writes its own words, as ``sys.stderr``.
    """
    deadline, made = Deadline.of(deadline), as_policy(policy)
    return alternatives_valid(validate(round), made, number, within, seed, deadline, log)


def alternatives_valid(
    round: Round,
    made: Policy,
    number: int,
    within: float,
    seed: int,
    deadline: Deadline,
    log: Writer | None,
) -> list[Plan]:
    """Return alternatives as `alternatives`; of a round that was validated when it was read."""
    from ronda.questions.different import best_plans

    if not isinstance(made, Modelled) or made.name not in ABLE:
        raise InputError("alternatives", f"policy {made.name}", " or ".join(ABLE))
    if made.exact or made.parts > 1:
        raise InputError("alternatives", "placement=exact or parts", "one model of options")
    seen = seen_by(made, round)
    try:
        with ending(deadline.end):
            question = made.question(seen.round, deadline, seed)
    except OutOfTimeError:
        return []
    with logged(log):
        search = made.search(question, deadline)
        return [seen.told(plan) for plan in best_plans(question, search, number, within)]
