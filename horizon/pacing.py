"""The part of the energy budget that a round may spend, by accrual or by demand.

The pacings that accrue along a line (even, series, price, carbon) give a round at time t the
greatest constant power that cannot overdraw the line within the window.

**demand** (ours) knows only the horizon's budget. Let B be the rest of the budget beyond the draw
of the idle cluster until the horizon's end. B is spent at ::

    (B / time left) n / n_mean

where n is the total weight of the jobs that are live now, and n_mean is its mean over time so far.
Power is thus proportional to the demand of live jobs. This is the rule "power equals the number of
unfinished jobs", which is 3-competitive for flow time plus energy on one speed-scaled processor
(Bansal, Chan and Pruhs, SODA 2009), scaled so that the budget lasts. A round never gets more than
B.
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
    """The energy that a round may spend: `energy_j`, `sustained_w` and `banked_j` of a `Round`."""

    energy_j: float
    sustained_w: float
    banked_j: float


class Pacer:
    """The pacing of an instance's energy budget."""

    def __init__(self, instance: Instance) -> None:
        energy = instance.budget.energy
        if energy is None:
            raise ValueError("there is no energy budget to pace")
        self.energy = energy
        # The draw of an awake, idle cluster, or less if the budget cannot bear it indefinitely.
        self._reserved_w = min(instance.cluster.topology.idle_w, energy.sustained_w)
        self._accrual = accrual(instance.budget, self._reserved_w)
        self._least_w = float(least_node_w(instance.cluster.topology).sum())
        self._job_seconds, self._since_s = 0.0, 0.0

    def advance(self, now_s: float, live: float) -> None:
        """Record the weight of live jobs since the last call."""
        self._job_seconds += live * (now_s - self._since_s)
        self._since_s = now_s

    def spending(self, now_s: float, used_j: float, live: float) -> Allowance:
        """Return the allowance of the round at `now_s`.

        `used_j` is the energy that has been used or is committed by now, and `live` is the total
        weight of the live jobs.
        """
        line, window_s = self._accrual, self.energy.window_s
        # Jobs that may not be stopped can have spent more than has accrued: idle nodes still draw.
        watts = max(self._least_w, line.bearable_w(now_s, used_j, now_s + window_s))
        sustained_w = line.bearable_w(now_s, used_j, float("inf"))
        if self.energy.pacing == "demand" and now_s < self.energy.horizon_s:
            asked_w = self._by_demand(now_s, used_j, live)
            if asked_w < watts:  # a pace: nothing of it is banked
                return Allowance(asked_w * window_s, min(sustained_w, asked_w), 0.0)
        banked_j = line.banked_j(now_s, used_j, window_s, watts)
        return Allowance(watts * window_s, sustained_w, max(0.0, banked_j))

    def lasts_until_s(self, now_s: float, used_j: float, watts: float) -> float:
        """Return the time until which the budget bears a constant power, up to rounding."""
        slack_j = 0.5 * RELATIVE * max(used_j, 0.0)
        return self._accrual.lasts_until_s(now_s, used_j - slack_j, watts)

    def _by_demand(self, now_s: float, used_j: float, live: float) -> float:
        """Return the watts for the demand of the live jobs (see the module)."""
        energy = self.energy
        left_s = energy.horizon_s - now_s
        left_j = energy.credit_j + energy.joules - used_j - self._reserved_w * left_s
        mean = self._job_seconds / now_s if now_s > 0 else live
        ratio = live / mean if mean > 0 else 1.0
        return self._reserved_w + max(0.0, left_j) / max(left_s, energy.window_s) * ratio


class Spending:
    """The power and energy that a run has used, and that a round may use.

    Attributes
    ----------
    weight
        The exact sum of the weights of the live jobs.
    cost, carbon
        The cost and the emissions of the energy used; None if the instance does not specify them.
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
        """Account for the time up to an event, before the event changes anything."""
        if self._pacer is not None:
            self._pacer.advance(now_s, float(self.weight))
        for tally in (self.cost, self.carbon):
            if tally is not None:
                for time_s in tally.changes(now_s):
                    tally.advance(time_s, self._nodes.used_j(time_s))

    def limits(self, now_s: float, ahead_s: float) -> dict[str, Any]:
        """Return the fields of a `Round` that limit its power and energy at `ahead_s` from now."""
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
        """Return the time at which the running jobs would use up the energy budget."""
        if self._pacer is None:
            return float("inf")
        return self._pacer.lasts_until_s(now_s, self._bound_j(now_s), self._nodes.meter.watts)

    def _bound_j(self, now_s: float) -> float:
        """Return the energy that has been used, or that waking nodes are committed to use."""
        return self._nodes.used_j(now_s) + self._nodes.owed_j(now_s)
