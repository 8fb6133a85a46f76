"""The interface of ronda's own policies: each has its rule, and all give the same guarantees.

A decision has three possible answers: the running jobs, the greedy fill, and the result of the
rule. The rule is cut at its checkpoints (`ronda.instances.clock`) early enough for the two simpler
answers.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from ronda.formulations.placement.rack_power import keeps_limits
from ronda.formulations.site.min_run import with_minimum_runs
from ronda.formulations.site.order import startable
from ronda.formulations.sleeping import woken
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.solvers.applied_rules import broken_rules
from ronda.solvers.as_one import AsOne, seen_by
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.room import Clocks, Room, full_clock
from ronda.solvers.greedy.site_limits import within_site_limits
from ronda.solvers.greedy.turns import until_turns_end
from ronda.solvers.rules import rules_of

FEW = 8
"""The number of jobs that the greedy fill tries to start even if the time is over."""

GOOD = 0.05
"""The gap up to which an interrupted plan is accepted even if it runs fewer jobs than run now."""


class TimelyPolicy(ABC):
    """A policy that answers by its deadline; a subclass defines its rule in `decide`.

    Attributes
    ----------
    takes_turns
        Whether jobs must end their turns first if restarts take too much of the GPU time
        (`ronda.solvers.greedy.turns`).
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capability]
    takes_turns: ClassVar[bool] = False

    @abstractmethod
    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Decide a round by the rule alone; each array is one job (`seen_by`)."""

    def plan(
        self,
        round: Round,
        *,
        deadline: Deadline | float | None = None,
        seed: int = 0,
        initial: Plan | None = None,
    ) -> Plan:
        """Decide a round by a deadline, which may be in seconds; None means no limit."""
        deadline = Deadline.of(deadline)
        seen = seen_by(self.capabilities, with_minimum_runs(round))
        before = initial and seen.shown(initial)
        return seen.told(self.in_time(seen.round, deadline=deadline, seed=seed, initial=before))

    def in_time(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Decide a round as the policy sees it; if cut, answer with running jobs and the fill.

        An interrupted plan runs no fewer jobs than run now, unless limits forbid them or the plan
        is known to be within `GOOD` of the best. A plan that breaks a rule of the user is
        discarded. Policies that do not know the site's rules see only jobs that may start.
        """
        rules = Capability.RULES in self.capabilities
        round = round if rules else startable(round)
        reserved_s = 0.0
        if deadline.limit_s is not None:
            # Keeping a running job takes 1 microsecond, trying a job 4, and starting it 25
            # (measured on one slow core).
            reserved_s = min(0.002 + 1.5e-5 * len(round.jobs), 0.8 * deadline.limit_s)
        try:
            with ending(deadline.end - reserved_s):
                made = self.decide(round, deadline=deadline, seed=seed, initial=initial)
                if self.takes_turns:
                    elastic = Capability.ELASTIC in self.capabilities
                    firm = until_turns_end(round, made, elastic=elastic)
                    if firm is not round:
                        made = self.decide(firm, deadline=deadline, seed=seed, initial=initial)
        except OutOfTimeError:
            made = Plan(policy=self.name, status=SolutionStatus.NONE, stop=StopReason.TIME_LIMIT)
        if made.stop is StopReason.TIME_LIMIT and _too_little(round, made):
            started = fill(round, round.held, deadline)
            record = replace(
                made.record,
                seed=seed,
                total_s=deadline.elapsed(),
                message=f"no time for more than what runs; {len(started)} jobs start as requested",
            )
            kept = Plan(
                policy=made.policy,
                allocations=round.held | started,
                prices={} if initial is None else initial.prices,
                stop=StopReason.TIME_LIMIT,
                status=SolutionStatus.FALLBACK,
                record=record,
                memory={} if initial is None else initial.memory,
            )
            made = woken(round, kept)
        if not rules:
            made = within_site_limits(round, made)
        own = rules_of(self)
        if own and (broken := broken_rules(own, round, made)):
            record = replace(made.record, message=f"found no plan that keeps {broken[0].where}")
            made = replace(made, allocations={}, status=SolutionStatus.NONE, record=record)
        return made


@dataclass(frozen=True)
class Clocked(TimelyPolicy):
    """A policy that decides GPUs (and batch) at full clock; `clocks` sets the clock.

    Every new allocation goes through `clocks`, which the suffix ``+zeus`` replaces
    (`ronda.solvers.policies.energy.zeus`). Jobs that run on keep their clocks.
    """

    def clocks(self, round: Round) -> Clocks:
        """Return the function that sets the clocks of jobs in a round."""
        return full_clock


def _too_little(round: Round, plan: Plan) -> bool:
    """Return whether an interrupted plan is worse than the running jobs."""
    if plan.status in (SolutionStatus.NONE, SolutionStatus.FALLBACK):
        return True
    held = round.held
    if len(plan.allocations) >= len(held) or (plan.gap is not None and plan.gap <= GOOD):
        return False
    return keeps_limits(round, held)


def fill(round: Round, held: Mapping[str, Allocation], deadline: Deadline) -> dict[str, Allocation]:
    """Return allocations of waiting jobs next to `held`, as requested, in order of submission.

    A job without room does not block later jobs. A job wakes nodes if awake nodes have no room. The
    fill ends soon after the deadline, but not before it has tried `FEW` jobs, so that a run makes
    progress even if every decision is cut.
    """
    deadline = deadline.sooner(-0.005)  # it may be late by this much
    started: dict[str, Allocation] = {}
    if not round.waiting:
        return started
    kept = [(s, held[s.job.id]) for s in round.running if s.job.id in held]
    staying = tuple(s if s.allocation is h else replace(s, allocation=h) for s, h in kept)
    staying = AsOne(replace(round, running=staying)).round.running
    room = Room(round, staying, sleeping=False)
    queue = sorted(startable(round).waiting, key=lambda state: state.job.submit_s)
    for tried, state in enumerate(queue):
        if (tried >= FEW and deadline.over()) or not room.free_gpus:
            break
        given = room.fit(state)
        if given is not None:
            started[state.job.id] = given
    return started
