"""One guard around every policy: whatever it does, a checked plan comes out, and the reason.

What a policy does wrong, it raises, answers with no plan or one that breaks a rule or that nobody
can write down, or comes much too late, ends neither a run nor the process that embeds it: what runs
keeps running, and what fits next to it starts.
"""

import math
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ronda.formulations.allocation.non_preemptible import bearing
from ronda.formulations.sleeping import woken
from ronda.horizon.fallback import MOST_SPARED, Checker, NoPlanError, Relief, fallback
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
from ronda.solvers.contract import Capability, FaultError, Policy
from ronda.solvers.greedy.as_one import seen_by
from ronda.solvers.greedy.in_time import fill
from ronda.solvers.rules import Rules, rules_of

LATE, LATE_S = 3.0, 1.0
"""A plan that takes this many times its limit, and a second, comes much too late to be used."""

CHECK_PER_JOB_S, MOST_TO_CHECK = 1e-5, 0.2
"""Seconds to check a plan, for each job (measured on one slow core: 22 microseconds for each that
runs), and the share of the limit that is left for it at most."""

FORECASTS = ("rate", "energy")
"""Rules on what a plan foresaw: one for a round that has passed is not held to them now."""


class Passed(NamedTuple):
    """What is so by now, if a decision takes effect later than the round it was asked about."""

    round: Round
    still: Callable[[Plan], Plan]  # what of a plan can still be done


class _Ruled(NamedTuple):
    """A checker that holds plans to a policy's rules of the user's own as well."""

    ledger: Checker
    own: Rules

    def check(self, round: Round, plan: Plan) -> list[Violation]:
        """Return every rule that a plan breaks."""
        return [*self.ledger.check(round, plan), *broken_rules(self.own, round, plan)]


class Guarded(NamedTuple):
    """A plan without a violation, as `relief` made it, and what was wrong with the policy's own."""

    relief: Relief
    faults: tuple[str, ...]
    solve_s: float  # seconds that the policy took
    replaced: bool  # whether another plan took the place of the policy's own


def guarded(
    policy: Policy,
    round: Round,
    ledger: Checker,
    *,
    deadline: Deadline,
    seed: int,
    initial: Plan | None = None,
    now: Passed | None = None,
) -> Guarded:
    """Ask a policy, and answer in its place if it must be.

    A plan for a round that has passed (`now`) is checked against that; what can no longer be done
    is left out, and what is left checked against the present except for what it foresaw.

    Raises
    ------
    NoPlanError
        If no plan keeps every limit, not even one in which nothing runs.
    """
    before_s, limit_s = deadline.elapsed(), deadline.limit_s
    if own := rules_of(policy):
        ledger = _Ruled(ledger, own)
    raised, gave = bearing(round)
    plan, faults = _asked(policy, raised, deadline=deadline, seed=seed, initial=initial)
    solve_s = deadline.elapsed()
    own_s = solve_s - before_s  # what start-up and reading took is not the policy's fault
    if not faults and limit_s is not None and own_s > LATE * limit_s + LATE_S:
        faults = [f"late: came after {own_s:.3g} s of {limit_s:.3g} s"]
        plan = _nothing(policy, seed, initial)
    if now is None:
        faults = faults or _broken(partial(ledger.check, round), plan)
    else:
        faults = faults or _broken(partial(check_plan, round), plan)
        plan, round = plan if faults else now.still(plan), now.round
        present = () if faults else ledger.check(round, plan)
        faults += [_told(v) for v in present if v.code not in FORECASTS]
    if not faults and plan.status is not SolutionStatus.NONE:
        return Guarded(Relief(_saying(plan, gave)), (), solve_s, replaced=False)
    if faults:
        plan = _refused(plan, faults, initial)
    may_sleep = Capability.SLEEPS in policy.capabilities
    relief = fallback(round, ledger, plan, may_sleep=may_sleep)
    if not relief.stopped and not relief.slowed:
        relief = _filled(round, ledger, relief, deadline)
    relief = relief._replace(plan=_saying(relief.plan, gave, relief.broken))
    return Guarded(relief, (*faults, *relief.broken), solve_s, replaced=True)


def answer(
    policy: Policy,
    round: Round,
    ledger: Checker,
    *,
    deadline: Deadline,
    seed: int,
    initial: Plan | None = None,
) -> Plan:
    """Return the guarded plan; one of status "none" that leaves all as it is, if none is valid.

    It comes by the deadline: the policy has until then except for the time to check its plan.
    """
    check_s = deadline.paced(CHECK_PER_JOB_S * len(round.jobs))
    check_s = min(check_s, MOST_TO_CHECK * (deadline.limit_s or 0.0))
    checked = deadline.sooner(check_s)
    try:
        return guarded(
            policy, round, ledger, deadline=checked, seed=seed, initial=initial
        ).relief.plan
    except NoPlanError as error:
        return Plan(
            policy=policy.name,
            allocations=round.held,
            stop=error.stop,
            status=SolutionStatus.NONE,
            record=SolveRecord(seed=seed, total_s=deadline.elapsed(), message=str(error)),
        )


def _asked(
    policy: Policy, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None
) -> tuple[Plan, list[str]]:
    """Return the policy's plan, or none and why."""
    try:
        seen = seen_by(policy, round)
        before = initial and seen.shown(initial)
        plan = ask(policy, seen.round, deadline=deadline, seed=seed, initial=before)
        if isinstance(plan, Plan):
            return seen.told(plan), []
    except Exception as error:
        plan = f"raised: {_words(error)}"
    return _nothing(policy, seed, initial), [plan]


def ask(
    policy: Policy, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None
) -> Plan | str:
    """Return what a policy answers, or what is wrong with that, in words."""
    try:
        plan: object = policy.plan(round, deadline=deadline, seed=seed, initial=initial)
    except FaultError as fault:
        return str(fault)
    except (Exception, SystemExit) as error:
        return f"raised: {_words(error)}"
    if isinstance(plan, Plan):
        return plan
    kind = "None" if plan is None else type(plan).__name__
    return f"answer: {kind}, not a plan"


def _nothing(policy: Policy, seed: int, initial: Plan | None) -> Plan:
    """Return the plan of a policy that has none; what it remembered is kept."""
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


def _broken(check: Callable[[Plan], Sequence[Violation]], plan: Plan) -> list[str]:
    """Return what is wrong with a plan: rules that it breaks, and what cannot be a plan at all."""
    try:
        if found := check(plan):
            return [_told(violation) for violation in found]
        numbers = {"objective": plan.objective, "bound": plan.bound, **plan.prices}
        for name, number in numbers.items():
            if number is not None and not math.isfinite(number):
                return [f"number: {name} is {number}"]
        msgspec.json.decode(msgspec.json.encode(plan), type=Plan)
    except Exception as error:
        return [malformed(plan, error)]
    return []


def malformed(plan: Plan, error: Exception) -> str:
    """Return in words what cannot be in a plan, over which `error` was raised."""
    try:
        normal(plan)
    except MalformedError as inside:
        return f"malformed: {inside}"
    return f"malformed: {_words(error)}"


def _refused(plan: Plan, faults: list[str], initial: Plan | None) -> Plan:
    """Return what is kept of a plan with faults: its record, and what it remembers, if written."""
    record = replace(plan.record, message=f"refused: {faults[0]}")
    memory, details = plan.memory, plan.details
    try:
        kept = msgspec.json.encode((record, memory, details))
        msgspec.json.decode(kept, type=tuple[SolveRecord, dict[str, Any], PlanDetails])
    except Exception:  # it is a fault that has been told
        record = SolveRecord(message=f"refused: {faults[0]}")
        memory, details = {} if initial is None else initial.memory, PlanDetails()
    stop = plan.stop if plan.stop is StopReason.INFEASIBLE else StopReason.ERROR
    return replace(plan, stop=stop, record=record, memory=memory, details=details)


def _saying(plan: Plan, gave: Sequence[Conflict], broken: Sequence[str] = ()) -> Plan:
    """Return a plan that says which limits gave way, and what no plan keeps."""
    said = (*gave, *plan.details.conflicts)
    if not said and not broken:
        return plan
    words = [plan.record.message, *(conflict.message for conflict in said), *broken]
    record = replace(plan.record, message="; ".join(filter(None, words)))
    return replace(plan, record=record, details=replace(plan.details, conflicts=said))


def _filled(round: Round, ledger: Checker, relief: Relief, deadline: Deadline) -> Relief:
    """Return a relief with what starts next to what runs in the time that is left.

    Where all of it together breaks a rule, one job after the other.
    """
    plan = relief.plan
    then = round if plan.asleep is None else replace(round, asleep=plan.asleep)
    started = fill(then, plan.allocations, deadline)
    one_by_one = [{job: allocation} for job, allocation in started.items()]
    for more in (started, *one_by_one[:MOST_SPARED]) if started else ():
        fuller = woken(then, replace(plan, allocations=plan.allocations | more))
        if all(v.where in relief.unmet for v in ledger.check(round, fuller)):
            plan = fuller
            if more is started:
                break
    return relief._replace(plan=plan)
