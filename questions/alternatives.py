"""The best different plans of a round: solve, cut off the solution, and solve again.

Two plans differ if a job has different options in them or runs in only one of them. If R are the
options of a plan and U the options of the jobs that it leaves out, the row

    Σ_{k in R} x_k − Σ_{k in U} x_k ≤ |R| − 1

cuts off that plan and no other (E. Balas and R. Jeroslow, *Canonical cuts on the unit hypercube*,
SIAM J. Applied Mathematics 23, 1972). Only options of the model count; it has no option that
another option of the same job dominates.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import separable, shortages
from ronda.formulations.allocation.separable import Separable, normalise
from ronda.formulations.options.table import rows_of
from ronda.horizon.solve import ROUND
from ronda.instances.arguments import checked
from ronda.instances.base import Index, Positive, Rows
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan, StopReason
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.tables.table import Report, Table
from ronda.solvers.as_one import seen_by
from ronda.solvers.contract import Policy
from ronda.solvers.decision.by_milp import solved
from ronda.solvers.decision.node_cuts import Cut, with_cuts
from ronda.solvers.decision.plan import Question, nobody, taken, to_plan
from ronda.solvers.exact.backends import Writer, logged
from ronda.solvers.exact.linear_form import form_of
from ronda.solvers.policies.optimising.milp import ByModel
from ronda.solvers.prices.dual import Search
from ronda.solvers.registry import as_policy

ABLE = ("milp", "cp-sat", "sia-like")
"""Policies that can give alternatives, because they solve one model of the whole round."""

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
    """Return the best different plans of a round, best first; the list is empty without any plan.

    Plans differ if at least one job has another option or runs in only one of them. Options that
    another option of the job dominates do not count (`ronda.questions.alternatives`). All plans
    pass `ronda.check`, and no plan runs a job that its choice leaves out.

    Parameters
    ----------
    policy
        ``milp``, ``cp-sat`` or ``sia-like`` with parameters, but without ``placement=exact`` and
        without parts.
    number, within
        Largest number of plans, and the share of the best objective by which a plan may fall short
        of it. Fewer are returned if no more exist or time runs out.
    deadline, log
        Time limit in seconds, or a `Deadline` that has begun, None for no limit; and a stream for
        the solver's log, such as ``sys.stderr``.
    """
    deadline, made = Deadline.of(deadline), as_policy(policy)
    return alternatives_told(validate(round), made, number, within, seed, deadline, log)[0]


def alternatives_told(
    round: Round,
    made: Policy,
    number: int,
    within: float,
    seed: int,
    deadline: Deadline,
    log: Writer | None,
) -> tuple[list[Plan], Report | None]:
    """Return `alternatives` of a valid round, and a report of them; None without plans.

    It tells their objectives and differences.
    """
    if not isinstance(made, ByModel) or made.name not in ABLE:
        raise InputError("alternatives", f"policy {made.name}", " or ".join(ABLE))
    if made.exact or made.parts > 1:
        raise InputError("alternatives", "placement=exact or parts", "one model of options")
    seen = seen_by(made.capabilities, round)
    try:
        with ending(deadline.end):
            question = made.question(seen.round, deadline, seed)
    except OutOfTimeError:
        return [], None
    with logged(log):
        search = made.search(question, deadline)
        plans = [seen.told(plan) for plan in best_plans(question, search, number, within)]
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
    """Return the differences of a plan from the best plan in words, keyed by job."""
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
    """Return the option of a job in words; empty if the job waits."""
    if given is None:
        return {}
    way = given.option
    words = {"pool": pools[way.pool], "span": way.span}
    return words | {"GPUs": f"{way.gpus:g}", "clock": f"{way.clock:g}", "batch": f"{way.batch:g}"}


def best_plans(question: Question, search: Search, number: int, within: float) -> list[Plan]:
    """Return at most `number` different plans, the best first.

    No plan falls short of the first by more than the share `within`. Choices that do not fit on
    nodes, or whose plan breaks a rule, are left out. All plans have the bound of the first.
    """
    case = make_case(question.round, question.table, question.values)
    plans, before = list[Plan](), list[Rows]()
    if shortages(case):
        return plans
    problem, deadline, bound = separable(case, both_limits=True), search.deadline, np.inf
    while len(plans) < number and not deadline.over():
        began = deadline.elapsed()
        cut, units = normalise(_without(problem, before))
        none = nobody(question.table, StopReason.COMPLETE, search)
        outcome, choice = solved(form_of(cut), None, len(case.rows), none, search, began)
        if outcome.x is None:
            break
        chosen, _ = problem.answer(outcome.x)
        rows = taken(chosen, case.rows)
        worth = question.table.worth(question.values, rows)
        if not before and outcome.bound is not None:
            bound = outcome.bound * units.value
        most = plans[0].objective or 0.0 if plans else worth
        if worth < most - within * abs(most):
            break
        before.append(chosen)
        choice = replace(
            choice,
            chosen=rows,
            objective=worth,
            bound=max(bound, worth),
            scale=case.scale,
            incumbents=((deadline.elapsed(), worth),),
            fill=False,
        ).judged(search.gap)
        try:
            plan = to_plan(question, choice, deadline)
        except OutOfTimeError:
            break
        if (rows_of(question.table, plan) == rows).all() and not check(question.round, plan):
            plans.append(plan)
    return sorted(plans, key=lambda plan: -(plan.objective or 0.0))  # solved only up to the gap


def _without(problem: Separable, before: list[Rows]) -> Separable:
    """Return the problem with a row that cuts off each earlier choice (J,)."""
    job, cuts = np.arange(problem.jobs).repeat(np.diff(problem.start)), list[Cut]()
    for chosen in before:
        row = np.where(chosen[job] < 0, -1.0, 0.0)
        row[chosen[chosen >= 0]] = 1.0
        most = np.count_nonzero(chosen >= 0) - 1.0
        cuts.append(Cut(row, np.zeros(len(problem.block_value)), most))
    return with_cuts(problem, cuts, "other")
