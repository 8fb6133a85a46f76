"""CES of Helios (Hu et al., SC 2021): when nodes sleep and wake, by two thresholds and a buffer.

The rule and its five published parameter sets are those of the artifact (HeliosArtifact,
framework/CES Service/CES_Helios.py).

`Ces` decides on a demand series, as there; `CesQueue` is a policy, whose jobs really wait for
nodes. Both ask the same `Watch`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.greedy.room import Room, start_in_order
from ronda.solvers.policies.rigid.queues import queued
from ronda.systems.helios.controllers import Control
from ronda.systems.helios.forecasts import STEP_S, DemandForecast, causal, foretold, past

Forecast = Callable[[int, int], Floats]
"""From a step t and a number n: what is believed at t of steps t to t + n - 1, (n,) or fewer."""

WARM_UP = 6
"""Steps at the start that the rule only follows, and whose changes it does not count."""


@dataclass(frozen=True, slots=True)
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


RULES = {
    "venus": CesRule(3, 18, 0.5, 1, 2, 5, 12, 0),
    "earth": CesRule(6, 18, 1, 1, 5, 5, 12, 1),
    "saturn": CesRule(6, 18, 1, 1, 1, 5, 12, 0),
    "uranus": CesRule(3, 18, 1, 1, 1, 7, 12, 1),
    "philly": CesRule(2, 30, 0.1, 0, 1, 20, 10, 0),
}
"""The published parameters, by cluster."""


@dataclass(slots=True)
class Watch:
    """The rule at work: how many nodes are awake, and from which step on some may go to sleep."""

    rule: CesRule
    awake: int
    guard: int

    def wake(self, step: int, need: int, total: int) -> None:
        """Wake the nodes that are missing, and a buffer; then none sleeps for some steps."""
        if self.awake < need:
            self.awake, self.guard = need + self.rule.buffer, step + self.rule.keep
        self.awake = min(self.awake, total)

    def let_sleep(self, step: int, before: Ints, need: int, ahead: Callable[[], Floats]) -> None:
        """Leave awake what is needed and a buffer, once the need has fallen and will fall.

        Parameters
        ----------
        before
            (H,) the need of the steps before this one.
        ahead
            Foretells the need of this step and of those after it.
        """
        rule, least = self.rule, need + self.rule.buffer
        if step < self.guard or before.mean() - need < rule.fall:
            return
        foretold = ahead()
        soon, later = foretold[: rule.ahead].mean(), foretold[: 2 * rule.ahead].mean()
        if need - soon < rule.falling:
            return
        self.guard = step
        # Where the need is to rise again, or few nodes would sleep, all stay awake.
        if soon >= later and self.awake - min(self.awake, least) >= rule.least:
            self.awake = least


def published(forecast: Ints) -> Forecast:
    """Return a forecast that reads one series whenever it is asked, as the artifact does."""
    return lambda t, n: forecast[t : t + n].astype(np.float64)


def ces(needed: Ints, total: Ints, forecast: Forecast, rule: CesRule) -> Ints:
    """Return the (T,) nodes that the rule keeps awake, for (T,) nodes needed and in total.

    A node that is missing wakes in the step in which it is needed.
    """
    active, watch = np.zeros_like(needed), Watch(rule, 0, rule.calm)
    for t, (need, most) in enumerate(zip(needed.tolist(), total.tolist(), strict=True)):
        if t < WARM_UP:
            watch.awake = min(need + rule.buffer, most)
        else:
            watch.wake(t, need, most)
            watch.let_sleep(
                t, needed[t - rule.past : t], need, partial(forecast, t, 2 * rule.ahead)
            )
        active[t] = watch.awake
    return active


@dataclass(frozen=True, slots=True, kw_only=True)
class Ces:
    """Helios's controller on a demand series.

    Attributes
    ----------
    cluster
        The cluster whose published parameters are used.
    forecast
        The series' own (published), which is not causal; LightGBM, as leaking as the artifact's, or
        causal (boosted); by the time of day (seasonal); or no change (last).
    history
        An earlier demand series, a name or a file, from which ``boosted`` learns.
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
        rise, needed = np.floor(made.quantile(0.5, steps)), series.needed_nodes
        return lambda t, n: needed[t] + np.append(0.0, rise[t, : n - 1]), made


class CesPool(Record, frozen=True):
    """The memory of a pool's controller, with demands in nodes and times in steps.

    Attributes
    ----------
    step
        The step of the last decision.
    past, peak, last
        The demand: the most in each of the steps before, the most in this one, and the last.
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
    """The memories of the controllers, by pool."""

    key: ClassVar[str] = "ces"

    pools: dict[str, CesPool] = {}


@dataclass(frozen=True)
class CesQueue(TimelyPolicy):
    """Start jobs in the order of `qssf`; how many nodes are awake follows CES.

    Hu et al. (SC'21), the controller of Helios: every ten minutes it looks whether the nodes that
    jobs use have become fewer and will become fewer still, and then leaves awake what is used and
    a buffer. A job that finds no room on awake nodes wakes what it needs and a buffer, and waits
    for it. Each pool has a controller. The published forecast has seen the future; here a need that
    is not usual at its hour, by an earlier series, is expected to become so again.

    Parameters
    ----------
    cluster
        The cluster whose published parameters are used.
    history
        An earlier demand series, a name or a file, that forecasts follow; empty: no change.
        Instances are taken to begin at midnight, as the series does.
    """

    cluster: Literal["venus", "earth", "saturn", "uranus", "philly"] = "earth"
    history: str = ""

    name: ClassVar[str] = "ces-queue"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    def __post_init__(self) -> None:
        """Refuse a history from which nothing can be learnt."""
        past(self.history)

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start what fits, on awake nodes first; let the others sleep by the rule."""
        room = Room(round, round.running, sleeping=True)
        started = start_in_order(room, queued(round, "qssf"))
        before, rule = CesMemory.recall(initial).pools, RULES[self.cluster]
        awake, pools = list[int](), dict[str, CesPool]()
        for used, total, pool in used_by_pool(round, room.used):
            known = before.get(pool, CesPool())
            pools[pool] = looked(known, round.now_s, used, total, rule, self.history)
            awake.append(pools[pool].awake)
        memory = CesMemory(pools).noted()
        plan = Plan(policy=self.name, allocations=round.held | started, memory=memory)
        return with_awake(round, plan, awake)


def looked(
    known: CesPool, now_s: float, used: int, total: int, rule: CesRule, history: str
) -> CesPool:
    """Return the memory of a pool's controller after a look, with `used` nodes in use from now on.

    Nodes may have gone to sleep at the end of each step since the last look; those that are missing
    wake at once.
    """
    step, back = int(now_s // STEP_S), max(WARM_UP, rule.past)
    since = step if known.step is None else known.step
    if known.step is None:
        known = CesPool(step, peak=used, awake=total, guard=step + rule.calm)
    watch, past, peak = Watch(rule, known.awake, known.guard), [*known.past], known.peak
    for done in range(max(since, step - rule.past - 1), step):
        if len(past) >= back:
            ahead = partial(foretold, history, done, peak, total)
            watch.let_sleep(done, np.array(past[-rule.past :]), peak, ahead)
        past, peak = [*past, peak][-back:], known.last
    begins = step > since and now_s == step * STEP_S
    watch.wake(step, used, total)
    peak = used if begins else max(peak, used)
    return CesPool(step, past, peak, used, watch.awake, watch.guard)
