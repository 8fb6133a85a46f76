"""CES of Helios (Hu et al., SC 2021), which lets nodes sleep by two thresholds and a buffer.

The rule and its five published parameter sets come from the artifact (HeliosArtifact, framework/CES
Service/CES_Helios.py).

`Ces` decides on a demand series, as the artifact does. `CesQueue` is a policy: its jobs really wait
for nodes. ``getattr(ces, "prices")`` is the class of ``prices+ces``, in which another policy starts
the jobs (`CesSleep`). All use the same `Watch`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from msgspec.structs import replace

from ronda.formulations.sleeping import used_by_pool, with_awake
from ronda.instances.base import Floats, Ints, Record
from ronda.instances.clock import Deadline
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.job import used_nodes
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.room import Room, start_in_order
from ronda.solvers.policies.rigid.queues import queued
from ronda.solvers.registry import composed
from ronda.systems.helios.controllers import Control
from ronda.systems.helios.forecasts import (
    DemandForecast,
    causal,
    foretold,
)
from ronda.systems.helios.stepwise import BASES, SLEEPS_BESIDE, Stepwise

Forecast = Callable[[int, int], Floats]
"""Maps t and n to the demand forecast at step t for steps t to t + n - 1, shape (n,) or shorter."""

WARM_UP = 6
"""Number of first steps in which the rule only follows demand and counts no change."""


@dataclass(frozen=True, slots=True)
class CesRule:
    """The parameters of the rule, with times in steps.

    Attributes
    ----------
    past, ahead
        Number of past and of future steps that are averaged (H and F).
    fall
        Number of nodes by which demand must be below its recent mean before nodes sleep.
    falling
        Number of nodes by which the forecast must be below the demand.
    least
        Smallest number of nodes that are put to sleep at once.
    buffer
        Number of nodes kept awake above the demand after a change.
    keep
        Number of steps after a wake-up in which no node goes to sleep.
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
"""The published parameters, keyed by cluster."""


@dataclass(slots=True)
class Watch:
    """The state of the rule: the nodes awake, and the first step in which some may sleep."""

    rule: CesRule
    awake: int
    guard: int

    def wake(self, step: int, need: int, total: int) -> None:
        """Wake the missing nodes and a buffer, and let no node sleep for the next `keep` steps."""
        if self.awake < need:
            self.awake, self.guard = need + self.rule.buffer, step + self.rule.keep
        self.awake = min(self.awake, total)

    def let_sleep(self, step: int, before: Ints, need: int, ahead: Callable[[], Floats]) -> None:
        """Keep only the needed nodes and a buffer awake if demand has fallen and will fall.

        Parameters
        ----------
        before
            Demand of the previous steps, shape (H,).
        ahead
            Returns the forecast demand of this step and the next ones.
        """
        rule, least = self.rule, need + self.rule.buffer
        if step < self.guard or before.mean() - need < rule.fall:
            return
        foretold = ahead()
        soon, later = foretold[: rule.ahead].mean(), foretold[: 2 * rule.ahead].mean()
        if need - soon < rule.falling:
            return
        self.guard = step
        # All nodes stay awake if demand is to rise again or if few nodes would sleep.
        if soon >= later and self.awake - min(self.awake, least) >= rule.least:
            self.awake = least


def published(forecast: Ints) -> Forecast:
    """Return a forecast that always reads the same series, as the artifact does."""
    return lambda t, n: forecast[t : t + n].astype(np.float64)


def ces(needed: Ints, total: Ints, forecast: Forecast, rule: CesRule) -> Ints:
    """Return the number of nodes that the rule keeps awake, shape (T,) like `needed` and `total`.

    A missing node wakes in the step that needs it.
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
    """The controller of Helios on a demand series.

    Attributes
    ----------
    cluster
        The cluster whose published parameters are used.
    forecast
        The forecast: the one in the series (published), which is not causal; LightGBM as in the
        artifact (leaking), or causal (boosted); the time of day (seasonal); or no change (last).
    history
        An earlier demand series, a name or a file, from which ``boosted`` learns.
    """

    cluster: Literal["venus", "earth", "saturn", "uranus", "philly"] = "earth"
    forecast: Literal["published", "leaking", "boosted", "seasonal", "last"] = "published"
    history: str = ""

    def control(self, series: Demand) -> Control:
        """Decide each step by the two thresholds."""
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
    """The memory of a pool's controller, with demand in nodes and times in steps.

    Attributes
    ----------
    step
        The step of the last decision.
    past, peak, last
        The highest demand in each previous step, the highest in this step, and the latest demand.
    awake
        Number of nodes that are awake.
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
    """The controllers' memories, keyed by pool."""

    key: ClassVar[str] = "ces"

    pools: dict[str, CesPool] = {}


@dataclass(frozen=True, kw_only=True)
class CesSleep(Stepwise):
    """Let CES choose how many nodes are awake beside the jobs that the base policy decides.

    CES is the controller of Helios (Hu et al., SC'21). In every step it checks whether jobs use
    fewer nodes than before and are expected to use fewer still. If so, only the used nodes and a
    buffer stay awake. A job that finds no room on awake nodes wakes the nodes that it needs and a
    buffer, and waits for them. Each pool has its own controller. The published forecast has seen
    the future; this one expects demand to return to what an earlier series shows for that hour.

    Parameters
    ----------
    cluster
        The cluster whose published parameters are used.
    history
        An earlier demand series, a name or a file, on which forecasts are based. If it is empty,
        demand is expected not to change. Instances are assumed to begin at midnight, as the series
        does.
    step_s
        Length of a step in seconds, in which all times of the rule are counted. It must be that of
        the history.
    """

    cluster: Literal["venus", "earth", "saturn", "uranus", "philly"] = "earth"

    def let_sleep(self, round: Round, plan: Plan, initial: Plan | None) -> Plan:
        """Let unused nodes sleep by the rule."""
        before, rule = CesMemory.recall(initial).pools, RULES[self.cluster]
        awake, pools = list[int](), dict[str, CesPool]()
        for used, total, pool in used_by_pool(round, used_nodes(plan.allocations.values())):
            known, step_s = before.get(pool, CesPool()), self.step_s
            pools[pool] = looked(known, round.now_s, used, total, rule, self.history, step_s)
            awake.append(pools[pool].awake)
        memory = plan.memory | CesMemory(pools).noted()
        return with_awake(round, replace(plan, memory=memory), awake)


@dataclass(frozen=True, kw_only=True)
class CesQueue(CesSleep):
    """Start jobs in the order of `qssf` and let CES choose which nodes sleep (`CesSleep`)."""

    name: ClassVar[str] = "ces-queue"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start the jobs that fit, on awake nodes first, and let unused nodes sleep by the rule."""
        room = Room(round, round.running, sleeping=True)
        started = start_in_order(room, queued(round, "qssf"))
        plan = Plan(policy=self.name, allocations=round.held | started)
        return self.let_sleep(round, plan, initial)


__getattr__ = composed(BASES, CesSleep, "ces", "with nodes asleep by CES", SLEEPS_BESIDE)


def looked(
    known: CesPool,
    now_s: float,
    used: int,
    total: int,
    rule: CesRule,
    history: str,
    step_s: float,
) -> CesPool:
    """Return the updated memory of a pool's controller when `used` nodes are in use from now on.

    Nodes may have gone to sleep at the end of each step since the last update. Missing nodes wake
    at once.
    """
    step, back = int(now_s // step_s), max(WARM_UP, rule.past)
    since = step if known.step is None else known.step
    if known.step is None:
        known = CesPool(step, peak=used, awake=total, guard=step + rule.calm)
    watch, past, peak = Watch(rule, known.awake, known.guard), [*known.past], known.peak
    for done in range(max(since, step - rule.past - 1), step):
        if len(past) >= back:
            ahead = partial(foretold, history, done, peak, total)
            watch.let_sleep(done, np.array(past[-rule.past :]), peak, ahead)
        past, peak = [*past, peak][-back:], known.last
    begins = step > since and now_s == step * step_s
    watch.wake(step, used, total)
    peak = used if begins else max(peak, used)
    return CesPool(step, past, peak, used, watch.awake, watch.guard)
