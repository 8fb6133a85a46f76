"""Shadow prices in seconds of mean JCT: what one more kilowatt, GPU or GPU-hour would save.

Two ways, which need not agree:

* **measured**: differences between runs. Along a curve the difference quotient of mean JCT over
  sustained power; between an instance and the same with more nodes that over GPUs (the budget
  stays, so the new nodes' idle power has to be paid from it).
* **from prices**: a policy with objective ``rank`` values a round's plan in seconds of total flow
  time saved per second (`ronda.formulations.objectives.rank`), so the price of a resource is that
  per GPU or watt. Over J jobs, price x 3600 / J is what one more GPU for an hour saves of the mean
  JCT, and the sum over rounds what one more for the whole run does. This is the model's opinion: it
  knows no future arrival, and a price holds for a small change only. Prices of other objectives are
  in units that cannot be converted, and are left out.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ronda.bench.frontier.curves import Curve
from ronda.instances.arrays import Floats
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule

_JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True)
class Worth:
    """What one more of each resource saves of the mean JCT, by the prices of each decision.

    All are (R,): when a decision was made, how long it stood, and seconds of mean JCT per GPU-hour
    (of the pool whose GPUs are dearest) and per kilowatt-hour.
    """

    time_s: Floats
    lasts_s: Floats
    gpu_hour_s: Floats
    kwh_s: Floats

    @property
    def mean_gpu_hour_s(self) -> float:
        """Mean over time of the worth of a GPU-hour."""
        return float(np.average(self.gpu_hour_s, weights=self.lasts_s))

    @property
    def mean_kwh_s(self) -> float:
        """Mean over time of the worth of a kilowatt-hour."""
        return float(np.average(self.kwh_s, weights=self.lasts_s))

    @property
    def gpu_s(self) -> float:
        """Seconds of mean JCT that one more GPU saves if it is there for the whole run."""
        return float((self.gpu_hour_s * self.lasts_s).sum() / 3600.0)

    @property
    def kw_s(self) -> float:
        """Seconds of mean JCT that one more kilowatt saves if it is there for the whole run."""
        return float((self.kwh_s * self.lasts_s).sum() / 3600.0)


def kilowatt_saves(curve: Curve) -> dict[float, float]:
    """Return by budget factor the seconds of mean JCT per kilowatt up to the next budget."""
    return {
        low.factor: (low.jct_s.mean - high.jct_s.mean) / (high.sustained_w - low.sustained_w) * 1e3
        for low, high in pairwise(curve.points)
    }


def gpu_saves(curve: Curve, larger: Curve, gpus: int) -> dict[float, float]:
    """Return by budget factor the seconds of mean JCT that each of `gpus` more GPUs saved.

    Parameters
    ----------
    curve, larger
        A policy on the instance, and on the one with more GPUs.
    gpus
        How many more.
    """
    with_more = {point.sustained_w: point.jct_s.mean for point in larger.points}
    return {
        point.factor: (point.jct_s.mean - with_more[point.sustained_w]) / gpus
        for point in curve.points
        if point.sustained_w in with_more
    }


def worth(instance: Instance, schedule: Schedule) -> Worth | None:
    """Return what resources were worth by the prices of a run's plans.

    Parameters
    ----------
    instance
        As it was run, budget included.
    schedule
        Of the run.

    Returns
    -------
    Worth or None
        None if no plan had prices, or the policy's objective is not ``rank``.
    """
    rounds = schedule.rounds
    if schedule.config.get("objective") != "rank" or not any(r.prices for r in rounds):
        return None
    time_s = np.array([record.now_s for record in rounds])
    energy = instance.budget.energy
    window_s = 0.0 if energy is None else energy.window_s
    gpu = [
        max((v for k, v in r.prices.items() if k.startswith("gpus[")), default=0.0) for r in rounds
    ]
    watt = [
        r.prices.get("power_cap", 0.0) + window_s * r.prices.get("energy_window", 0.0)
        for r in rounds
    ]
    jobs = len(instance.jobs)
    return Worth(
        time_s=time_s,
        lasts_s=np.diff(np.append(time_s, schedule.end_s)),
        gpu_hour_s=np.array(gpu) * 3600.0 / jobs,
        kwh_s=np.array(watt) * _JOULES_PER_KWH / jobs,
    )
