"""CES of Helios (Hu et al., SC 2021): when nodes sleep and wake, by two thresholds and a buffer.

The rule and its five published parameter sets are those of the artifact (HeliosArtifact,
framework/CES Service/CES_Helios.py).

`Ces` decides on a demand series, as there; `CesQueue` is a policy, whose jobs really wait for
nodes. Both follow the same rule.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ronda.formulations.sleeping import used_by_pool, with_awake
from ronda.instances.arrays import Floats, Ints
from ronda.instances.base import Record
from ronda.instances.clock import Deadline
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.room import Room, start_in_order
from ronda.solvers.policies.rigid.queues import Queue, queued
from ronda.systems.helios.controllers import Control
from ronda.systems.helios.forecasts import STEP_S, DemandForecast, causal, foretold, past

Forecast = Callable[[int, int], Floats]
"""From a step t and a number n: what is believed at t of steps t to t + n - 1, (n,) or fewer."""

WARM_UP = 6
"""Steps at the start that the rule only follows, and whose changes it does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CesRule:
    """Parameters of the rule; lengths are in steps.

    Attributes
    ----------
    past, ahead
        Steps behind and ahead of which means are taken (H and F).
    fall
        By how many nodes the demand must lie below its recent mean for nodes to sleep.
    falling
        By how many nodes the forecast must lie below the demand.
    least
        Fewest nodes that are put to sleep at once.
    buffer
        Nodes awake above the demand after a change.
    keep
        Steps after a wake-up in which no node goes to sleep.
    calm
        First step at which nodes may go to sleep.
    """

    past: int
    ahead: int
    fall: float
    falling: float
    least: int
    buffer: int
    keep: int
    calm: int


def _rule(*numbers: float) -> CesRule:
    past, ahead, fall, falling, least, buffer, keep, calm = numbers
    return CesRule(
        past=int(past),
        ahead=int(ahead),
        fall=fall,
        falling=falling,
        least=int(least),
        buffer=int(buffer),
        keep=int(keep),
        calm=int(calm),
    )


RULES = {
    "venus": _rule(3, 18, 0.5, 1, 2, 5, 12, 0),
    "earth": _rule(6, 18, 1, 1, 5, 5, 12, 1),
    "saturn": _rule(6, 18, 1, 1, 1, 5, 12, 0),
    "uranus": _rule(3, 18, 1, 1, 1, 7, 12, 1),
    "philly": _rule(2, 30, 0.1, 0, 1, 20, 10, 0),
}
"""The published parameters, by cluster."""


def published(forecast: Ints) -> Forecast:
    """Return a forecast that is one series, whenever it is asked: as the artifact reads its own."""
    return lambda t, n: forecast[t : t + n].astype(np.float64)


def ces(needed: Ints, total: Ints, forecast: Forecast, rule: CesRule) -> Ints:
    """Return the (T,) nodes that the rule keeps awake, for (T,) nodes needed and in total.

    A node that is missing wakes in the step in which it is needed.
    """
    active = np.zeros_like(needed)
    now, guard = 0, rule.calm
    for t, need in enumerate(needed.tolist()):
        if t < WARM_UP:
            now = need + rule.buffer
        elif now < need:
            now, guard = need + rule.buffer, t + rule.keep
        now = min(now, int(total[t]))
        if t >= WARM_UP and t >= guard and sinks(needed, t, forecast, rule):
            guard = t
            now = fewer(need, now, t, forecast, rule)
        active[t] = now
    return active


def fewer(need: int, now: int, t: int, forecast: Forecast, rule: CesRule) -> int:
    """Return the nodes that stay awake of `now` when the demand sinks: all, if it is to rise."""
    rests = forecast(t, rule.ahead).mean() >= forecast(t, 2 * rule.ahead).mean()
    least = need + rule.buffer
    return least if rests and now - min(now, least) >= rule.least else now


def sinks(needed: Ints, t: int, forecast: Forecast, rule: CesRule) -> bool:
    """Return whether the demand lies below its recent mean, and is believed to fall further."""
    fallen = needed[t - rule.past : t].mean() - needed[t]
    falls = needed[t] - forecast(t, rule.ahead).mean()
    return bool(fallen >= rule.fall and falls >= rule.falling)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ces:
    """Helios's controller on a demand series.

    Attributes
    ----------
    cluster
        Whose published parameters.
    forecast
        The series' own, which is not causal; LightGBM, causal or as leaking as the artifact's; by
        the time of day; or that all stays as it is.
    history
        A demand series that precedes, for ``boosted`` to learn from; a name or a file.
    """

    cluster: Literal["venus", "earth", "saturn", "uranus", "philly"] = "earth"
    forecast: Literal["published", "leaking", "boosted", "seasonal", "last"] = "published"
    history: str = ""

    def control(self, series: Demand) -> Control:
        """Decide by the two thresholds."""
        foretold, quantiles = self._forecast(series)
        active = ces(series.needed_nodes, series.total_nodes, foretold, RULES[self.cluster])
        leaks = self.forecast in ("published", "leaking")
        return Control(active, "leaking" if leaks else "history", quantiles)

    def _forecast(self, series: Demand) -> tuple[Forecast, DemandForecast | None]:
        if self.forecast == "published":
            if not series.forecast:
                found = f"no published forecast in {series.name}"
                raise InputError("--policy ces", found, "ces(forecast=boosted), or another one")
            return published(np.array(series.forecast)), None
        if self.forecast == "leaking":
            from ronda.systems.helios.boosted import leaking

            return published(leaking(series).astype(np.int64)), None
        made = causal(series, "level", self.forecast, self.history)
        steps = 2 * RULES[self.cluster].ahead
        return _medians(series.needed_nodes, made.quantile(0.5, steps)), made


def _medians(needed: Ints, rise: Floats) -> Forecast:
    def of(t: int, steps: int) -> Floats:
        return np.asarray(needed[t] + np.concatenate([[0.0], np.floor(rise[t, : steps - 1])]))

    return of


class CesPool(Record, frozen=True):
    """What the controller of a pool remembers; demands in nodes, times in steps.

    Attributes
    ----------
    step
        That of the last decision.
    past, peak, last
        The demand: the most in each of the steps before, and in this one; after the last decision.
    awake
        Nodes that are awake.
    guard
        The first step in which nodes may go to sleep.
    """

    step: int | None = None
    past: list[int] = []
    peak: int = 0
    last: int = 0
    awake: int = 0
    guard: int = 0


class CesMemory(PlanMemory, frozen=True):
    """What the controllers remember, by pool."""

    key: ClassVar[str] = "ces"

    pools: dict[str, CesPool] = {}


@dataclass(frozen=True)
class CesQueue:
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

    name: ClassVar[str] = "ces-queue"
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
        before, rule = CesMemory.recall(initial).pools, RULES[self.cluster]
        awake, pools = list[int](), dict[str, CesPool]()
        for used, total, pool in used_by_pool(round, room.used):
            known = _Pool(rule, self.history, total, before.get(pool, CesPool()))
            awake.append(known.look(round.now_s, used))
            pools[pool] = known.kept()
        plan = Plan(policy=self.name, allocations=held, memory=CesMemory(pools).noted())
        return with_awake(round, plan, awake)


class _Pool:
    """The controller of a pool."""

    def __init__(self, rule: CesRule, history: str, total: int, before: CesPool) -> None:
        self.rule, self.history, self.total = rule, history, total
        self.step, self.past = before.step, [*before.past]
        self.peak, self.last = before.peak, before.last
        self.awake, self.guard = before.awake, before.guard

    def kept(self) -> CesPool:
        """Return what is remembered."""
        return CesPool(self.step, self.past, self.peak, self.last, self.awake, self.guard)

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
