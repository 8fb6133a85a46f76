"""A deadline is a promise of every policy: what runs keeps running, and what fits then starts.

A decision leaves an answer at every stage: keep what runs; then the greedy fill; then what the
policy itself finds. Building ends at its checkpoints (`ronda.instances.clock`) early enough for
the stages before.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TypeVar

from msgspec.structs import replace

from ronda.formulations.placement.rack_power import keeps_limits
from ronda.formulations.sleeping import woken
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.solvers.applied_rules import broken_rules
from ronda.solvers.contract import Policy
from ronda.solvers.greedy.as_one import AsOne, seen_by
from ronda.solvers.greedy.room import Room
from ronda.solvers.rules import rules_of

RESERVE_S, RESERVE_PER_JOB_S, MOST_RESERVED = 0.002, 1.5e-5, 0.8
"""Seconds kept for the stages before, and the share of the limit that they are at most: to keep
what runs takes 1 microsecond a job, to try a job 4, to start it 25 (measured on one slow core)."""

FEW, LATE_S = 8, 0.005
"""Jobs that the greedy fill tries to start even if time is over, and by how much it may be late."""

GOOD = 0.05
"""Gap up to which a plan that was cut counts by its worth, and not by how many jobs it runs."""


Method = TypeVar("Method", bound=Callable[..., Plan])


def in_time(decide: Method) -> Method:
    """Decorate `Policy.plan`: cut short at the deadline, it answers with an earlier stage.

    No plan that was cut runs fewer jobs than run now, unless limits forbid to keep these or the
    plan is known to be within `GOOD` of the best; an array counts as it is seen
    (`ronda.solvers.greedy.as_one`). A plan that breaks a rule of the policy's is none.
    """

    @wraps(decide)
    def plan(
        self: Policy,
        round: Round,
        *,
        deadline: Deadline | float | None,
        seed: int,
        initial: Plan | None = None,
    ) -> Plan:
        deadline = Deadline.of(deadline)
        seen = seen_by(self, round)
        round, initial = seen.round, initial and seen.shown(initial)
        try:
            with ending(deadline.end - _reserved_s(round, deadline)):
                made = decide(self, round, deadline=deadline, seed=seed, initial=initial)
        except OutOfTimeError:
            made = Plan(policy=self.name, status=SolutionStatus.NONE, stop=StopReason.TIME_LIMIT)
        if made.stop is StopReason.TIME_LIMIT and _too_little(round, made):
            made = _earlier(round, made, deadline=deadline, seed=seed, initial=initial)
        if broken := broken_rules(rules_of(self), round, made):
            record = replace(made.record, message=f"found no plan that keeps {broken[0].where}")
            made = replace(made, allocations={}, status=SolutionStatus.NONE, record=record)
        return seen.told(made)

    return plan  # type: ignore[return-value]


def _reserved_s(round: Round, deadline: Deadline) -> float:
    """Return the seconds that must be left when building ends."""
    if deadline.limit_s is None:
        return 0.0
    wanted = RESERVE_S + RESERVE_PER_JOB_S * len(round.jobs)
    return min(wanted, MOST_RESERVED * deadline.limit_s)


def _too_little(round: Round, plan: Plan) -> bool:
    if plan.status in (SolutionStatus.NONE, SolutionStatus.FALLBACK):
        return True
    held = round.held
    if len(plan.allocations) >= len(held) or (plan.gap is not None and plan.gap <= GOOD):
        return False
    return keeps_limits(round, held)


def _earlier(
    round: Round, cut: Plan, *, deadline: Deadline, seed: int, initial: Plan | None
) -> Plan:
    """Return the plan of the stages before: what runs, and what starts next to it in time."""
    started = fill(round, round.held, deadline)
    record = replace(
        cut.record,
        seed=seed,
        total_s=deadline.elapsed(),
        message=f"no time for more than what runs; {len(started)} jobs start as requested",
    )
    plan = Plan(
        policy=cut.policy,
        allocations=round.held | started,
        prices={} if initial is None else initial.prices,
        stop=StopReason.TIME_LIMIT,
        status=SolutionStatus.FALLBACK,
        record=record,
        memory={} if initial is None else initial.memory,
    )
    return woken(round, plan)


def fill(round: Round, held: Mapping[str, Allocation], deadline: Deadline) -> dict[str, Allocation]:
    """Return what waiting jobs start on next to what is held, as requested, first come first.

    A job that finds no room does not block those behind it, and wakes nodes if those awake have
    none. It ends soon after the deadline, but not before the first few: a run whose every decision
    is cut goes on all the same.
    """
    deadline = deadline.sooner(-LATE_S)
    started: dict[str, Allocation] = {}
    if not round.waiting:
        return started
    kept = (replace(s, allocation=held[s.job.id]) for s in round.running if s.job.id in held)
    staying = AsOne(replace(round, running=tuple(kept))).round.running
    room = Room(round, staying, sleeping=False)
    queue = sorted(round.waiting, key=lambda state: state.job.submit_s)
    for tried, state in enumerate(queue):
        if (tried >= FEW and deadline.over()) or not room.free_gpus:
            break
        given = room.fit(state)
        if given is not None:
            started[state.job.id] = given
    return started
