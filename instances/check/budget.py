"""Check of a schedule's power over time against budgets, prices and carbon intensity."""

import numpy as np

from ronda.instances.arrays import Floats
from ronda.instances.budget import EnergyBudget, StepSeries
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule
from ronda.instances.violation import ACCOUNTING, RELATIVE, Violation


def cap_violations(
    instance: Instance, times: Floats, power: Floats, end_s: float
) -> list[Violation]:
    """Return the first time at which the power is above the cap."""
    cap = instance.budget.power_cap_w
    if cap is None:
        return []
    moments, watts = _refined(times, power, cap, end_s)
    limits = _held(cap, moments)
    return first_above("power", "cluster", moments, watts, limits, "W")


def energy_violations(
    instance: Instance, times: Floats, power: Floats, end_s: float
) -> list[Violation]:
    """Return the first change of power or accrual by which more is used than has accrued.

    Both are linear in between, so that no time in between can be worse.
    """
    budget = instance.budget.energy
    if budget is None:
        return []
    rate = _accrual(instance, budget)
    moments, watts = _refined(times, power, rate, end_s)
    seconds = np.diff(np.append(moments, end_s))
    used = np.append(0.0, np.cumsum(watts * seconds))
    accrued = np.append(0.0, np.cumsum(_held(rate, moments) * seconds)) + budget.credit_j
    if budget.pacing == "demand":
        accrued += budget.joules
    return first_above("energy", "cluster", np.append(moments, end_s), used, accrued, "J")


def price_violations(
    instance: Instance, schedule: Schedule, times: Floats, power: Floats
) -> list[Violation]:
    """Compare the cost and the grams that a schedule claims with the integrals of its power."""
    found = []
    for name, series in (
        ("energy_cost", instance.budget.energy_price_per_j),
        ("carbon_g", instance.budget.carbon_g_per_j),
    ):
        claimed = getattr(schedule, name)
        if series is None:
            if claimed is not None:
                message = f"claims {claimed:.12g}, but the instance has no series for it"
                found.append(Violation("accounting", name, message))
            continue
        moments, watts = _refined(times, power, series, schedule.end_s)
        seconds = np.diff(np.append(moments, schedule.end_s))
        exact = float((watts * _held(series, moments)) @ seconds)
        if claimed is None or not abs(claimed - exact) <= ACCOUNTING * exact:
            message = f"claims {claimed}, not {exact:.12g}"
            found.append(Violation("accounting", name, message))
    return found


def first_above(
    code: str, where: str, times: Floats, values: Floats, limits: Floats, unit: str
) -> list[Violation]:
    """Return a violation at the first time at which a value is above its limit."""
    above = np.flatnonzero(~(values <= limits * (1 + RELATIVE)))
    if not above.size:
        return []
    k = above[0]
    message = f"{values[k]:.9g} {unit} of {limits[k]:.9g} {unit} at {times[k]:.9g} s"
    return [Violation(code, where, message)]


def _refined(
    times: Floats, power: Floats, series: StepSeries, end_s: float
) -> tuple[Floats, Floats]:
    changes = np.array(series.times_s)
    moments = np.union1d(times, changes[changes < end_s])
    return moments, power[np.searchsorted(times, moments, side="right") - 1]


def _held(series: StepSeries, moments: Floats) -> Floats:
    k = np.searchsorted(np.array(series.times_s), moments, side="right") - 1
    return np.array(series.values)[np.maximum(k, 0)]


def _accrual(instance: Instance, budget: EnergyBudget) -> StepSeries:
    """Return the watts at which the budget accrues; all of it is there at once for "demand"."""
    mean_w, end_s = budget.joules / budget.horizon_s, budget.horizon_s
    if budget.pacing == "even":
        return StepSeries(times_s=(0.0,), values=(mean_w,))
    if budget.pacing == "demand":
        return StepSeries(times_s=(0.0, end_s), values=(0.0, mean_w))
    followed = {
        "series": budget.accrual,
        "price": instance.budget.energy_price_per_j,
        "carbon": instance.budget.carbon_g_per_j,
    }[budget.pacing]
    assert followed is not None  # a valid instance has it
    weight = [v if budget.pacing == "series" else 1 / v for v in followed.values]
    steps = [(t, w) for t, w in zip(followed.times_s, weight, strict=True) if t < end_s]
    ends = [*(t for t, _ in steps[1:]), end_s]
    whole = sum(w * (until - t) for (t, w), until in zip(steps, ends, strict=True))
    watts = [budget.joules * w / whole for _, w in steps]
    return StepSeries(times_s=(*(t for t, _ in steps), end_s), values=(*watts, mean_w))
