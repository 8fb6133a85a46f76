"""The decision of one round."""

from typing import Annotated

from ronda.horizon.gate import answer
from ronda.instances.arguments import checked
from ronda.instances.base import Index, Positive
from ronda.instances.check.checker import Ledger
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.solvers.applied_rules import refuse_bad
from ronda.solvers.contract import Policy
from ronda.solvers.exact.backends import Writer, logged
from ronda.solvers.registry import as_policy
from ronda.solvers.rules import rules_of, with_rules

ROUND = "a round (ronda.read reads one; ronda.run drives an instance)"


@checked
def solve(
    round: Annotated[Round, ROUND],
    policy: Policy | str = "milp",
    *,
    seed: Index = 0,
    deadline: Deadline | Positive | None = None,
    initial: Plan | None = None,
    log: Writer | None = None,
    extra: object = (),
) -> Plan:
    """Validate one round and decide it with one policy.

    The plan is checked. If the policy fails or its plan breaks a rule, running jobs continue and
    jobs that fit next to them start. In that case `Plan.status` is ``fallback``, or ``none`` if no
    plan keeps every limit, and ``record.message`` gives the reason. The same round, seed and
    initial plan give the same plan, unless the time limit cut the search.

    Parameters
    ----------
    policy
        A policy, or its name with parameters as in ``"milp(objective=rank, gap=1e-4)"``.
    deadline
        The time limit: a number of seconds, or a `Deadline` that has begun; None means no limit.
    initial
        A plan from which to start the search.
    log
        A stream for the log of a model's solver while it runs, such as ``sys.stderr``.
    extra
        The user's own rules, which the plan keeps (docs/own_rules.md): functions of the round and
        its `OptionTable` that return a `Limit`, a `Term` or several, or the path of a file with
        such functions. For `milp` and `prices`.

    Raises
    ------
    InputError
        If the round is not valid, or a rule is unusable: it raises, or returns something else.
    """
    clock = Deadline.of(deadline)  # it covers all that follows
    made = with_rules(as_policy(policy), extra, "extra")
    valid = validate(round)
    return solve_valid(valid, made, seed=seed, deadline=clock, initial=initial, log=log)


def solve_valid(
    round: Round,
    policy: Policy | str,
    *,
    seed: int = 0,
    deadline: Deadline,
    initial: Plan | None = None,
    log: Writer | None = None,
) -> Plan:
    """Decide a valid round like `solve`; a round from a file was validated when it was read."""
    made, ledger = as_policy(policy), Ledger(round.cluster)
    if own := rules_of(made):
        refuse_bad(own, round)
    with logged(log):
        return answer(made, round, ledger, deadline=deadline, seed=seed, initial=initial).plan
