"""The best different plans of one round."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from ronda.horizon.solve import ROUND
from ronda.instances.arguments import checked
from ronda.instances.base import Index, Positive
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.tables.table import Report, Table
from ronda.solvers.as_one import seen_by
from ronda.solvers.contract import Policy
from ronda.solvers.exact.backends import Writer, logged
from ronda.solvers.policies.optimising.milp import ByModel
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

    if not isinstance(made, ByModel) or made.name not in ABLE:
        raise InputError("alternatives", f"policy {made.name}", " or ".join(ABLE))
    if made.exact or made.parts > 1:
        raise InputError("alternatives", "placement=exact or parts", "one model of options")
    seen = seen_by(made.capabilities, round)
    try:
        with ending(deadline.end):
            question = made.question(seen.round, deadline, seed)
    except OutOfTimeError:
        return []
    with logged(log):
        search = made.search(question, deadline)
        return [seen.told(plan) for plan in best_plans(question, search, number, within)]


def alternatives_told(
    round: Round,
    made: Policy,
    number: int,
    within: float,
    seed: int,
    deadline: Deadline,
    log: Writer | None,
) -> tuple[list[Plan], Report | None]:
    """Return alternatives, and what they are worth and in what they differ, if there are any."""
    plans = alternatives_valid(round, made, number, within, seed, deadline, log)
    return plans, _report(round, plans) if plans else None


def _report(round: Round, plans: Sequence[Plan]) -> Report:
    best = plans[0].objective or 0.0
    told: list[dict[str, Any]] = [
        {
            "objective": plan.objective,
            "below_best": (best - (plan.objective or 0.0)) / abs(best) if best else 0.0,
            "running": len(plan.allocations),
            "differs": _differences(round, plan, plans[0]),
        }
        for plan in plans
    ]
    rows = [
        {
            "plan": number,
            "objective": f"{each['objective']:.8g}",
            "below the best": f"{100 * each['below_best']:.3g} %",
            "jobs that run": each["running"],
            "what differs": _in_words(each["differs"]),
        }
        for number, each in enumerate(told, 1)
    ]
    fields = {"round": round.name, "policy": plans[0].policy, "bound": plans[0].bound}
    return Report(fields | {"alternatives": told}, [Table.of("", rows, left=(-1,))])


def _in_words(differs: Mapping[str, str]) -> str:
    found = [f"{job}: {words}" for job, words in differs.items()]
    more = [f"… and {len(found) - 6:,} more jobs"] * (len(found) > 6)
    return "; ".join([*found[:6], *more]) or "the best"


def _differences(round: Round, plan: Plan, best: Plan) -> dict[str, str]:
    """Return how jobs run in a plan, by job, where that differs from the best plan."""
    pools = [pool.name for pool in round.cluster.topology.pools]
    found = {}
    for job in (state.job.id for state in round.jobs):
        own, other = (_way(each.allocations.get(job), pools) for each in (plan, best))
        if own != other and own and other:
            changed = [what for what in own if own[what] != other[what]]
            found[job] = ", ".join(f"{what} {other[what]} → {own[what]}" for what in changed)
        elif own != other:
            found[job] = "runs" if own else "waits"
    return found


def _way(given: Allocation | None, pools: Sequence[str]) -> dict[str, str]:
    """Return how a job runs, in words; empty if it does not."""
    if given is None:
        return {}
    option = given.option
    numbers = {"GPUs": option.gpus, "clock": option.clock, "batch": option.batch}
    return {"pool": pools[option.pool], "span": option.span} | {
        what: f"{number:g}" for what, number in numbers.items()
    }
