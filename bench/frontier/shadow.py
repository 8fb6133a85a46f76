"""Shadow prices: the seconds of mean JCT that one more kilowatt, GPU or GPU-hour would save.

There are two estimates, which may disagree:

* **measured**: differences between runs. Along a curve, the estimate is the difference quotient of
  mean JCT and sustained power. Between an instance and the same instance with more nodes, it is
  that of mean JCT and GPUs. The budget stays, so it also pays for the new nodes' idle power.
* **from prices**: a policy with objective ``rank`` values a round's plan in seconds of total flow
  time saved per second (`ronda.formulations.objectives.rank`), so a resource's price is that value
  per GPU or watt. With J jobs, one more GPU for an hour saves price x 3600 / J of the mean JCT, and
  one more GPU for the whole run saves the sum over rounds. This estimate is the model's: the model
  knows no future arrivals, and a price holds only for a small change. Prices of other objectives
  have units that cannot be converted, and are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ronda.bench.frontier.curves import Curve
from ronda.formulations.allocation.rows import is_limit, seconds_of
from ronda.instances.base import Floats
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Worth:
    """The savings of mean JCT per unit of each resource, from the prices of each decision.

    All fields have shape (R,): the time of each decision, how long it lasted, and seconds of mean
    JCT per GPU-hour (of the pool with the dearest GPUs) and per kilowatt-hour.
    """

    time_s: Floats
    lasts_s: Floats
    gpu_hour_s: Floats
    kwh_s: Floats

    def of_run(self) -> dict[str, float]:
        """Return the savings of one more kilowatt or GPU for the whole run, and means over time."""
        hours = self.lasts_s / 3600.0
        return {
            "kw_priced_s": float(self.kwh_s @ hours),
            "gpu_priced_s": float(self.gpu_hour_s @ hours),
            "gpu_hour_s": float(np.average(self.gpu_hour_s, weights=hours)),
            "kwh_s": float(np.average(self.kwh_s, weights=hours)),
        }


SHADOWS = {
    "kw_measured_s": "kW (measured)",
    "kw_priced_s": "kW (prices)",
    "gpu_measured_s": "GPU (measured)",
    "gpu_priced_s": "GPU (prices)",
    "gpu_hour_s": "GPU-hour (prices)",
    "kwh_s": "kWh (prices)",
}
"""The worth of one more unit of each resource in seconds of mean JCT: a kilowatt (measured between
neighbouring budgets) or a GPU (measured with more nodes) for the whole run, or for an hour."""

Shadow = dict[str, Any]
"""The columns of `SHADOWS` for the policy `label` at the budget `factor`; None means unknown."""


def shadows(
    instance: Instance,
    found: Sequence[Curve],
    larger: Mapping[int, Sequence[Curve]],
    worths: Mapping[tuple[str, float], Worth],
) -> tuple[Shadow, ...]:
    """Return a row for each policy and budget with any known shadow price.

    `larger` maps numbers of additional nodes to curves with them; `worths` is by label and factor.
    """
    made = []
    nodes = min(larger, default=0)
    gpus = nodes * instance.cluster.node_groups[0].gpus_per_node
    more = {curve.label: curve for curve in larger.get(nodes, ())}
    for curve in found:
        slopes = kilowatt_saves(curve)
        gains = gpu_saves(curve, more[curve.label], gpus) if curve.label in more else {}
        for factor in (point.factor for point in curve.points):
            row: Shadow = dict.fromkeys(SHADOWS)
            row |= {"kw_measured_s": slopes.get(factor), "gpu_measured_s": gains.get(factor)}
            if (curve.label, factor) in worths:
                row |= worths[curve.label, factor].of_run()
            if any(value is not None for value in row.values()):
                made.append({"label": curve.label, "factor": factor, **row})
    return tuple(made)


def kilowatt_saves(curve: Curve) -> dict[float, float]:
    """Return the seconds of mean JCT saved per kilowatt up to the next budget, by budget factor."""
    return {
        low.factor: (low.mean_jct_s - high.mean_jct_s) / (high.sustained_w - low.sustained_w) * 1e3
        for low, high in pairwise(curve.points)
    }


def gpu_saves(curve: Curve, larger: Curve, gpus: int) -> dict[float, float]:
    """Return the seconds of mean JCT saved per additional GPU, by budget factor.

    `larger` is the curve of the same policy on the instance with `gpus` more GPUs.
    """
    with_more = {point.sustained_w: point.mean_jct_s for point in larger.points}
    return {
        point.factor: (point.mean_jct_s - with_more[point.sustained_w]) / gpus
        for point in curve.points
        if point.sustained_w in with_more
    }


def worth(instance: Instance, schedule: Schedule) -> Worth | None:
    """Return the worth of resources according to the prices of a run's plans.

    Return None if no plan had prices or the policy's objective is not ``rank``. `instance` is the
    one that was run, including its budget.
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
        sum(each * seconds_of(name, window_s) for name, each in r.prices.items() if is_limit(name))
        for r in rounds
    ]
    jobs = len(instance.jobs)
    return Worth(
        time_s=time_s,
        lasts_s=np.diff(np.append(time_s, schedule.end_s)),
        gpu_hour_s=np.array(gpu) * 3600.0 / jobs,
        kwh_s=np.array(watt) * 3.6e6 / jobs,
    )
