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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ronda.bench.frontier.curves import Curve
from ronda.formulations.allocation.rows import is_limit, seconds_of
from ronda.instances.arrays import Floats
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule


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

    def of_run(self) -> dict[str, float]:
        """Return what one more kilowatt or GPU for the whole run saves, and means over time."""
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
"""What one more of each resource is worth, in seconds of mean JCT: a kilowatt (measured between a
budget and the next) or a GPU (measured with more nodes) for the whole run, an hour of either."""

Shadow = dict[str, Any]
"""The columns of `SHADOWS` for the policy `label` at the budget `factor`; None: not known."""


def shadows(
    instance: Instance,
    found: Sequence[Curve],
    larger: Mapping[int, Sequence[Curve]],
    worths: Mapping[tuple[str, float], Worth],
) -> tuple[Shadow, ...]:
    """Return a row for each policy and budget of which anything is known.

    `larger` holds the curves with more nodes, by their number; `worths` is by label and factor.
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
    """Return by budget factor the seconds of mean JCT per kilowatt up to the next budget."""
    return {
        low.factor: (low.mean_jct_s - high.mean_jct_s) / (high.sustained_w - low.sustained_w) * 1e3
        for low, high in pairwise(curve.points)
    }


def gpu_saves(curve: Curve, larger: Curve, gpus: int) -> dict[float, float]:
    """Return by budget factor the seconds of mean JCT that each of `gpus` more GPUs saved.

    `larger` is the curve of the same policy on the instance that has them.
    """
    with_more = {point.sustained_w: point.mean_jct_s for point in larger.points}
    return {
        point.factor: (point.mean_jct_s - with_more[point.sustained_w]) / gpus
        for point in curve.points
        if point.sustained_w in with_more
    }


def worth(instance: Instance, schedule: Schedule) -> Worth | None:
    """Return what resources were worth by the prices of a run's plans.

    None if no plan had prices, or the policy's objective is not ``rank``. The instance is the one
    that was run, budget included.
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
