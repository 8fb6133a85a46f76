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

from typing import NamedTuple

from ronda.formulations.watts import least_node_w
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
