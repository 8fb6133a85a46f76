"""The gate in front of every policy, which always yields a plan that may be carried out.

`answer` lists the steps from a round to its plan. A policy may raise, answer without a plan, break
a rule, return a plan that cannot be written down, or answer much too late. None of this ends a run
or the process that embeds the policy: the running jobs continue, and jobs that fit next to them
start.
"""

import math
import traceback
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple, TypeGuard

import msgspec
from msgspec.structs import replace

from ronda.formulations.allocation.non_preemptible import bearing
from ronda.formulations.site.min_run import with_minimum_runs
from ronda.formulations.sleeping import woken
from ronda.horizon.load_shedding import MOST_SPARED, Checker, Cleared, NoPlanError, fallback
from ronda.instances.check.plan import check_plan
from ronda.instances.clock import Deadline
from ronda.instances.plan import (
    Conflict,
    Plan,
    PlanDetails,
    SolutionStatus,
    SolveRecord,
    StopReason,
)
from ronda.instances.round import Round
from ronda.instances.rules.validate import MalformedError, normal
from ronda.instances.violation import Violation
from ronda.solvers.applied_rules import broken_rules
from ronda.solvers.as_one import seen_by
from ronda.solvers.contract import Capability, FaultError, Policy
from ronda.solvers.greedy.policy import TimelyPolicy, fill
from ronda.solvers.rules import Rules, rules_of

LATE, LATE_S = 3.0, 1.0
"""A plan that takes more than this many times its limit, plus a second, is too late to be used."""


class Passed(NamedTuple):
    """The present, if a decision takes effect later than the round that it answers."""

    round: Round
    still: Callable[[Plan], Plan]  # returns the part of a plan that is still possible


class _Ruled(NamedTuple):
    """A checker that also applies the rules of a policy's user."""

    ledger: Checker
    own: Rules

    def check(self, round: Round, plan: Plan) -> list[Violation]:
        """Return every rule that a plan breaks."""
        return [*self.ledger.check(round, plan), *broken_rules(self.own, round, plan)]


def answer(
    policy: Policy,
    round: Round,
    ledger: Checker,
    *,
    deadline: Deadline,
    seed: int,
    initial: Plan | None = None,
    now: Passed | None = None,
) -> Cleared:
    """Ask a policy, check its plan, and replace the plan if necessary, by the deadline.

    A plan for an earlier round (with `now`) is checked against that round. Parts that are no longer
    possible are then left out, and the rest is checked against the present, except for predicted
    values. If no plan keeps every limit, not even one without jobs, the result has the status
    "none" and leaves everything as it is.
    """
    own, timely, round = rules_of(policy), is_timely(policy), with_minimum_runs(round)
    ruled: Checker = _Ruled(ledger, own) if own else ledger

    # Limits are raised to bear the jobs that may not be stopped.
    raised, gave = bearing(round)

    # The policy decides. Some time is reserved to check its plan, which takes 22 microseconds per
    # running job (measured on one slow core).
    before_s, limit_s = deadline.elapsed(), deadline.limit_s
    check_s = min(deadline.paced(1e-5 * len(round.jobs)), 0.2 * (limit_s or 0.0))
    asked = ask(policy, raised, deadline=deadline.sooner(check_s), seed=seed, initial=initial)
    solve_s = deadline.elapsed()
    own_s = solve_s - before_s  # start-up and reading are not the policy's fault
    if not isinstance(asked, str) and limit_s is not None and own_s > LATE * limit_s + LATE_S:
        asked = f"late: came after {own_s:.3g} s of {limit_s:.3g} s"

    # Its plan is checked in the round that it answers, and in the present.
    if isinstance(asked, str):
        faults, plan = [asked], _nothing(policy, seed, initial)
    elif now is None:
        # A policy of ronda's own checks its user's rules itself.
        plan, faults = asked, _faults((ledger if timely else ruled).check, round, asked, timely)
    else:
        plan, faults = asked, _faults(check_plan, round, asked, timely)
    if now is not None:
        plan, round = plan if faults else now.still(plan), with_minimum_runs(now.round)
        present = () if faults else ruled.check(round, plan)
        # Rates and energies that were predicted for an earlier round need not hold now.
        faults += [_told(v) for v in present if v.code not in ("rate", "energy")]
    if not faults and plan.status is not SolutionStatus.NONE:
        return Cleared(_saying(plan, gave), solve_s=solve_s)

    # Another plan replaces it: running jobs continue, and jobs that fit next to them start.
    rejected = _refused(plan, faults, initial) if faults else plan
    may_sleep = Capability.SLEEPS in policy.capabilities
    try:
        found = fallback(round, ruled, rejected, may_sleep=may_sleep)
    except NoPlanError as error:
        record = SolveRecord(seed=seed, total_s=deadline.elapsed(), message=str(error))
        none = Plan(
            policy=policy.name,
            allocations=round.held,
            stop=error.stop,
            status=SolutionStatus.NONE,
            record=record,
        )
        return Cleared(none, faults=(*faults,), solve_s=solve_s, replaced=True)
    if not found.stopped and not found.slowed:
        found = found._replace(plan=_filled(round, ruled, found, deadline.sooner(check_s)))
    broken = found.faults
    plan = _saying(found.plan, gave, broken)
    return found._replace(plan=plan, faults=(*faults, *broken), solve_s=solve_s, replaced=True)


def is_timely(policy: Policy) -> TypeGuard[TimelyPolicy]:
    """Return whether a policy keeps the promises of `TimelyPolicy.plan` by using that method."""
    return isinstance(policy, TimelyPolicy) and type(policy).plan is TimelyPolicy.plan


def ask(
    policy: Policy, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None
) -> Plan | str:
    """Return a policy's plan for a round in its view of arrays, or the reason why it has none."""
    decide = policy.in_time if is_timely(policy) else policy.plan
    try:
        seen = seen_by(policy.capabilities, round)
        before = initial and seen.shown(initial)
        plan: object = decide(seen.round, deadline=deadline, seed=seed, initial=before)
        if isinstance(plan, Plan):
            return seen.told(plan)
    except FaultError as fault:
        return str(fault)
    except (Exception, SystemExit) as error:
        return f"raised: {_words(error)}"
    kind = "None" if plan is None else type(plan).__name__
    return f"answer: {kind}, not a plan"


def _nothing(policy: Policy, seed: int, initial: Plan | None) -> Plan:
    """Return an empty plan for a policy without one; the policy's earlier memory is kept."""
    return Plan(
        policy=policy.name,
        stop=StopReason.ERROR,
        status=SolutionStatus.NONE,
        record=SolveRecord(seed=seed),
        memory={} if initial is None else initial.memory,
    )


def _words(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300] + where


def _told(violation: Violation) -> str:
    return f"{violation.code} {violation.where}: {violation.message}"


def _faults(
    check: Callable[[Round, Plan], Sequence[Violation]], round: Round, plan: Plan, timely: bool
) -> list[str]:
    """Return the rules that a plan breaks, or the reason why it is malformed.

    Whether the plan can be written down is tested only if the policy is not `timely`: types and
    tests ensure it for ronda's own policies.
    """
    try:
        if found := check(round, plan):
            return [_told(violation) for violation in found]
        numbers = {"objective": plan.objective, "bound": plan.bound, **plan.prices}
        for name, number in numbers.items():
            if number is not None and not math.isfinite(number):
                return [f"number: {name} is {number}"]
        if not timely:
            msgspec.json.decode(msgspec.json.encode(plan), type=Plan)
    except Exception as error:
        return [malformed(plan, error)]
    return []


def malformed(plan: Plan, error: Exception) -> str:
    """Return a description of the part that made a plan raise `error`."""
    try:
        normal(plan)
    except MalformedError as inside:
        return f"malformed: {inside}"
    return f"malformed: {_words(error)}"


def _refused(plan: Plan, faults: list[str], initial: Plan | None) -> Plan:
    """Return a faulty plan with its record, memory and details, if these can be written."""
    record = replace(plan.record, message=f"refused: {faults[0]}")
    memory, details = plan.memory, plan.details
    try:
        kept = msgspec.json.encode((record, memory, details))
        msgspec.json.decode(kept, type=tuple[SolveRecord, dict[str, Any], PlanDetails])
    except Exception:  # this fault is already reported
        record = SolveRecord(message=f"refused: {faults[0]}")
        memory, details = {} if initial is None else initial.memory, PlanDetails()
    stop = plan.stop if plan.stop is StopReason.INFEASIBLE else StopReason.ERROR
    return replace(plan, stop=stop, record=record, memory=memory, details=details)


def _saying(plan: Plan, gave: Sequence[Conflict], broken: Sequence[str] = ()) -> Plan:
    """Return a plan that states which limits gave way, and which rules no plan keeps."""
    said = (*gave, *plan.details.conflicts)
    if not said and not broken:
        return plan
    words = [plan.record.message, *(conflict.message for conflict in said), *broken]
    record = replace(plan.record, message="; ".join(filter(None, words)))
    return replace(plan, record=record, details=replace(plan.details, conflicts=said))


def _filled(round: Round, checker: Checker, found: Cleared, deadline: Deadline) -> Plan:
    """Return the plan with jobs that start next to the running ones, in the remaining time.

    If all of them together break a rule, they are tried one by one.
    """
    plan = found.plan
    then = round if plan.asleep is None else replace(round, asleep=plan.asleep)
    started = fill(then, plan.allocations, deadline)
    one_by_one = [{job: allocation} for job, allocation in started.items()]
    for more in (started, *one_by_one[:MOST_SPARED]) if started else ():
        fuller = woken(then, replace(plan, allocations=plan.allocations | more))
        if all(v.where in found.unmet for v in checker.check(round, fuller)):
            plan = fuller
            if more is started:
                break
    return plan
