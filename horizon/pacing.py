"""How much of the energy budget a round may spend: what has accrued, or what demand asks for.

The pacings that accrue along a line (even, series, price, carbon) give a round at t the greatest
constant power that cannot overdraw the line within the window.

**demand** (ours) knows only the horizon's budget. What is left of it beyond what the idle cluster
draws until the horizon's end, B, is spent at ::

    (B / time left) n / n_mean

with n the summed weights of the live jobs now and n_mean their mean over time so far: power in
proportion to the jobs that wait for it. That is the rule "power equals the number of unfinished
jobs", which is 3-competitive for flow time plus energy on one speed-scaled processor (Bansal, Chan
and Pruhs, SODA 2009), scaled so that the budget lasts. A round never gets more than B.
"""

from fractions import Fraction
from typing import Any, NamedTuple

from ronda.formulations.watts import least_node_w
from ronda.horizon.energy import Tally
from ronda.horizon.nodes import NodeStates
from ronda.instances.instance import Instance
from ronda.instances.outcome.accrual import accrual
from ronda.instances.violation import RELATIVE


class Allowance(NamedTuple):
    """What a round may spend: `energy_j`, `sustained_w` and `banked_j` of a `Round`."""

    energy_j: float
    sustained_w: float
    banked_j: float


class Pacer:
    """Paces the energy budget that an instance has."""

    def __init__(self, instance: Instance) -> None:
        energy = instance.budget.energy
        if energy is None:
            raise ValueError("there is no energy budget to pace")
        self.energy = energy
        # What an awake cluster draws, or at least what the budget can bear indefinitely.
        self._reserved_w = min(instance.cluster.topology.idle_w, energy.sustained_w)
        self._accrual = accrual(instance.budget, self._reserved_w)
        self._least_w = float(least_node_w(instance.cluster.topology).sum())
        self._job_seconds, self._since_s = 0.0, 0.0

    def advance(self, now_s: float, live: float) -> None:
        """Note how much weight of jobs has been live since the last time."""
        self._job_seconds += live * (now_s - self._since_s)
        self._since_s = now_s

    def spending(self, now_s: float, used_j: float, live: float) -> Allowance:
        """Return what the round at `now_s` may spend.

        `used_j` is what has been used, or is bound to be, by now.
        `live` are the summed weights of the live jobs.
        """
        line, window_s = self._accrual, self.energy.window_s
        # What may not be stopped may have spent more than has accrued: idle nodes still draw.
        watts = max(self._least_w, line.bearable_w(now_s, used_j, now_s + window_s))
        sustained_w = line.bearable_w(now_s, used_j, float("inf"))
        if self.energy.pacing == "demand" and now_s < self.energy.horizon_s:
            asked_w = self._by_demand(now_s, used_j, live)
            if asked_w < watts:  # a pace: nothing of it is banked
                return Allowance(asked_w * window_s, min(sustained_w, asked_w), 0.0)
        banked_j = line.banked_j(now_s, used_j, window_s, watts)
        return Allowance(watts * window_s, sustained_w, max(0.0, banked_j))

    def lasts_until_s(self, now_s: float, used_j: float, watts: float) -> float:
        """Return until when the budget bears a constant power, up to rounding."""
        slack_j = 0.5 * RELATIVE * max(used_j, 0.0)
        return self._accrual.lasts_until_s(now_s, used_j - slack_j, watts)

    def _by_demand(self, now_s: float, used_j: float, live: float) -> float:
        """Return the watts that the number of live jobs asks for (see the module)."""
        energy = self.energy
        left_s = energy.horizon_s - now_s
        left_j = energy.credit_j + energy.joules - used_j - self._reserved_w * left_s
        mean = self._job_seconds / now_s if now_s > 0 else live
        ratio = live / mean if mean > 0 else 1.0
        return self._reserved_w + max(0.0, left_j) / max(left_s, energy.window_s) * ratio


class Spending:
    """What a run has used of power and energy, and what a round may use.

    Attributes
    ----------
    weight
        The exact sum of the weights of the live jobs.
    cost, carbon
        What the energy used costs, and emits; None if the instance does not say.
    """

    def __init__(self, instance: Instance, nodes: NodeStates) -> None:
        budget = instance.budget
        price, carbon = budget.energy_price_per_j, budget.carbon_g_per_j
        self.weight = Fraction(0)
        self.cost = None if price is None else Tally(price)
        self.carbon = None if carbon is None else Tally(carbon)
        self._nodes, self._cap = nodes, budget.power_cap_w
        self._pacer = None if budget.energy is None else Pacer(instance)

    def advance(self, now_s: float) -> None:
        """Account for the time up to an event, before anything changes by it."""
        if self._pacer is not None:
            self._pacer.advance(now_s, float(self.weight))
        for tally in (self.cost, self.carbon):
            if tally is not None:
                for time_s in tally.changes(now_s):
                    tally.advance(time_s, self._nodes.used_j(time_s))

    def limits(self, now_s: float, ahead_s: float) -> dict[str, Any]:
        """Return the fields of a `Round` that limit what it may draw and use some time ahead."""
        then_s, found = now_s + ahead_s, dict[str, float]()
        for name, tally in (("energy_price_per_j", self.cost), ("carbon_g_per_j", self.carbon)):
            if tally is not None:
                found[name] = tally.series.at(now_s)
        if self._cap is not None:
            found["power_cap_w"] = max(0.0, self._cap.at(then_s) - self._nodes.waking_w())
        if self._pacer is not None:
            used_j = self._bound_j(now_s) + self._nodes.meter.watts * ahead_s
            found |= self._pacer.spending(then_s, used_j, float(self.weight))._asdict()
            found["window_s"] = self._pacer.energy.window_s
        return found

    def lasts_until_s(self, now_s: float) -> float:
        """Return when what runs now would use up the energy budget, if nothing ended before."""
        if self._pacer is None:
            return float("inf")
        return self._pacer.lasts_until_s(now_s, self._bound_j(now_s), self._nodes.meter.watts)

    def _bound_j(self, now_s: float) -> float:
        """Return the energy that has been used, or is bound to be by nodes that wake up."""
        return self._nodes.used_j(now_s) + self._nodes.owed_j(now_s)
