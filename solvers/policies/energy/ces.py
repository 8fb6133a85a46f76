"""CES beside a queue: nodes sleep by the rule of Helios while jobs really wait for them."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ronda.formulations.clock import Deadline
from ronda.formulations.sleeping.ces import RULES, WARM_UP, CesRule, fewer, sinks
from ronda.formulations.sleeping.standby import used_by_pool, with_awake
from ronda.instances.arrays import Floats
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.order import Queue, queued
from ronda.solvers.greedy.room import Room, start_in_order
from ronda.solvers.sleeping.history import STEP_S, foretold, past

MEMORY = "ces"
"""Key, in a plan's details: what the controller knows of each pool."""


@dataclass(frozen=True)
class Ces:
    """Start jobs in the order of a queue; how many nodes are awake follows CES.

    Hu et al. (SC'21), the controller of Helios: every ten minutes it looks whether the nodes that
    jobs use have become fewer and will become fewer still, and then leaves awake what is used and
    a buffer. A job that finds no room on awake nodes wakes what it needs and a buffer, and waits
    for it. Each pool has a controller. The published forecast has seen the future; here a need that
    is not usual at its hour, by an earlier series, is expected to become so again.

    Parameters
    ----------
    cluster
        Whose published parameters.
    queue
        The order of waiting jobs; the first that finds no room blocks.
    history
        A demand series (a name or a file) that forecasts follow; empty: all stays as it is.
        Instances are taken to begin at midnight, as the series does.
    """

    cluster: Literal["venus", "earth", "saturn", "uranus", "philly"] = "earth"
    queue: Queue = "qssf"
    history: str = ""

    name: ClassVar[str] = "ces"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    def __post_init__(self) -> None:
        """Refuse a history that tells nothing."""
        past(self.history)

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Start what fits, on awake nodes first; let the others sleep by the rule."""
        room = Room(round, round.running, sleeping=True)
        started = start_in_order(room, queued(round, self.queue))
        held = round.held | started
        before = {} if initial is None else initial.details.get(MEMORY, {})
        rule, awake, memory = RULES[self.cluster], [], {}
        for used, total, pool in used_by_pool(round, room.used):
            known = _Pool(rule, self.history, total, before.get(pool))
            awake.append(known.look(round.now_s, used))
            memory[pool] = known.kept()
        plan = Plan(policy=self.name, allocations=held, details={MEMORY: memory})
        return with_awake(round, plan, awake)


class _Pool:
    """The controller of a pool: what was needed in the steps before, and when it may act."""

    def __init__(
        self, rule: CesRule, history: str, total: int, before: dict[str, Any] | None
    ) -> None:
        self.rule, self.history, self.total = rule, history, total
        known = before or {}
        self.step: int | None = known.get("step")
        self.past: list[int] = [*known.get("past", ())]
        self.peak: int = known.get("peak", 0)
        self.last: int = known.get("last", 0)
        self.awake: int = known.get("awake", 0)
        self.guard: int = known.get("guard", 0)

    def kept(self) -> dict[str, Any]:
        """Return what is remembered."""
        names = ("step", "past", "peak", "last", "awake", "guard")
        return {name: getattr(self, name) for name in names}

    def look(self, now_s: float, used: int) -> int:
        """Return the nodes that are awake, with `used` in use from now on."""
        step = int(now_s // STEP_S)
        if self.step is None:
            self.step, self.guard, self.peak = step, step + self.rule.calm, used
            self.awake = self.total
        for done in range(max(self.step, step - self.rule.past - 1), step):
            self._end(done)
        begins = step > self.step and now_s == step * STEP_S
        self.step, self.last = step, used
        self.peak = used if begins else max(self.peak, used)
        if self.awake < used:
            self.awake, self.guard = used + self.rule.buffer, step + self.rule.keep
        self.awake = min(self.awake, self.total)
        return self.awake

    def _end(self, step: int) -> None:
        """Close a step: see whether nodes may sleep after it."""
        needed = np.array([*self.past, self.peak])
        t = len(needed) - 1
        if t >= max(WARM_UP, self.rule.past) and step >= self.guard:
            later = foretold(self.history, step, self.peak, self.total)

            def forecast(_: int, steps: int) -> Floats:
                return later[:steps]

            if sinks(needed, t, forecast, self.rule):
                self.guard = step
                self.awake = fewer(self.peak, self.awake, t, forecast, self.rule)
        self.past = [int(n) for n in needed[-max(WARM_UP, self.rule.past) :]]
        self.peak = self.last
