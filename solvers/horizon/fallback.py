"""When a policy has no valid plan: what runs keeps running, and load is shed if it must."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from ronda.formulations.fusion.sharing import narrowed
from ronda.formulations.sleeping.standby import unused
from ronda.instances.check.answer import Ledger
from ronda.instances.errors import RondaError
from ronda.instances.job import JobState, Option
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.instances.violation import Violation
from ronda.solvers.horizon.slowing import at_clock, slowings

Steps = Sequence[tuple[str, Option]]


class Relief(NamedTuple):
    """A plan, and the jobs that were slowed, stopped, or given their clock back."""

    plan: Plan
    slowed: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()


def fallback(round: Round, ledger: Ledger, rejected: Plan, *, may_sleep: bool) -> Relief:
    """Return a valid plan that starts nothing, with the record of the rejected one.

    Running jobs keep their allocations. If even these break a limit (a power cap that dropped, a
    budget that is spent), jobs are slowed down, then stopped, until it holds: clocks are lowered
    in order of the GPU time lost per watt (see `ronda.solvers.horizon.slowing`); those jobs are
    stopped first that lose the least GPU time since they began to run here, jobs that must not be
    stopped last. No more is slowed than is needed beside what is stopped. If `may_sleep`, nodes
    without jobs are put to sleep where stopping is not enough.

    Raises
    ------
    RondaError
        If stopping every job that runs does not help.
    """
    shed = _Shed(round, ledger, rejected)
    broken = shed.violations((), ())
    slowing_helps = broken and all(v.code in ("power", "energy") for v in broken)
    steps = slowings(round) if slowing_helps else []
    firm = {s.job.id for s in round.running if not s.job.preemptible}
    victims = [state.job.id for state in sorted(round.running, key=partial(_loss, round))]
    attempts = [(victims, False)]
    if may_sleep:
        attempts = [([v for v in victims if v not in firm], False), (victims, True)]
    for candidates, shed.sleeping in attempts:
        stopped = shed.fewest_stopped(steps, candidates)
        if stopped is not None:
            used = shed.fewest_steps(steps, stopped)
            slowed = tuple(dict.fromkeys(job for job, _ in used if job not in stopped))
            return Relief(shed.plan(used, stopped), slowed, tuple(stopped))
    violations = shed.violations(steps, victims)
    why = "" if may_sleep else f"; {rejected.policy} puts no nodes to sleep"
    raise RondaError(
        f"at {round.now_s:g} s no plan is valid, not even an empty one: "
        f"{violations[0].message}{why}"
    )


def restore(round: Round, ledger: Ledger, plan: Plan, clocks: Mapping[str, float]) -> Relief:
    """Give jobs that were slowed down their earlier clocks back, as far as the limits let them.

    Jobs that the (valid) plan stops or changes are left alone.
    """
    restored = []
    for state in round.running:
        clock, held = clocks.get(state.job.id), state.allocation
        if clock is None or held is None or plan.allocations.get(state.job.id) != held:
            continue
        faster = msgspec.structs.replace(held, option=at_clock(round, state, clock))
        trial = msgspec.structs.replace(
            plan, allocations={**plan.allocations, state.job.id: faster}
        )
        if not ledger.check(round, trial):
            plan = trial
            restored.append(state.job.id)
    return Relief(plan, restored=tuple(restored))


class _Shed:
    """Plans that keep what runs, but for some jobs that are slowed or stopped."""

    def __init__(self, round: Round, ledger: Ledger, rejected: Plan) -> None:
        self.round, self.ledger, self.rejected = round, ledger, rejected
        self.held = round.held
        self.jobs = {state.job.id: state.job for state in round.running}
        self.sleeping = False

    def plan(self, steps: Steps, stopped: Sequence[str]) -> Plan:
        """Return the plan."""
        kept = dict(self.held)
        for job, option in steps:
            kept[job] = msgspec.structs.replace(kept[job], option=option)
        for job in stopped:
            del kept[job]
        kept |= narrowed(kept, self.jobs, self.round.profiles, self.round.cluster)
        plan = Plan(
            policy=self.rejected.policy,
            allocations=kept,
            stop=self.rejected.stop,
            status=SolutionStatus.FALLBACK,
            record=self.rejected.record,
            details=self.rejected.details,
        )
        if not self.sleeping:
            return plan
        return msgspec.structs.replace(plan, asleep=unused(self.round, plan))

    def violations(self, steps: Steps, stopped: Sequence[str]) -> list[Violation]:
        """Return what the plan breaks; where jobs are stopped it may be those that must run."""
        found = self.ledger.check(self.round, self.plan(steps, stopped))
        return [v for v in found if v.code != "must-run"] if stopped else found

    def fewest_stopped(self, steps: Steps, candidates: Sequence[str]) -> Sequence[str] | None:
        """Return the fewest first jobs that must be stopped beside all steps; None: too few."""
        count = _fewest(len(candidates), lambda n: not self.violations(steps, candidates[:n]))
        return None if count is None else candidates[:count]

    def fewest_steps(self, steps: Steps, stopped: Sequence[str]) -> Steps:
        """Return the fewest first steps that must be taken if some jobs are stopped."""
        return steps[: _fewest(len(steps), lambda n: not self.violations(steps[:n], stopped))]


def _loss(round: Round, state: JobState) -> tuple[bool, float]:
    """Return by what jobs are stopped, least first: their GPU time since they began to run here."""
    gpus = state.allocation.option.own_gpus if state.allocation is not None else 0
    return not state.job.preemptible, gpus * (round.now_s - state.held_s)


def _fewest(most: int, enough: Callable[[int], bool]) -> int | None:
    """Return the least n from 0 to `most` that is enough, as every larger one is; None if none."""
    return bisect_left(range(most), True, key=enough) if enough(most) else None
