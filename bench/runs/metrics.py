"""What a run is judged by: the schedule's metrics, its check, and the bound that nobody beats."""

from dataclasses import dataclass
from typing import Any

from ronda.formulations.bounds.horizon import bounds
from ronda.instances.check.answer import Violation, check
from ronda.instances.instance import Instance
from ronda.instances.metrics import summarise
from ronda.instances.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Measured:
    """The metrics of a run (the fields of ``ronda run``), and every rule that it breaks."""

    metrics: dict[str, Any]
    violations: list[Violation]


def measure(instance: Instance, schedule: Schedule, *, wall_s: float) -> Measured:
    """Summarise, check and bound a schedule.

    Parameters
    ----------
    instance, schedule
        What was to do, and what was done.
    wall_s
        Seconds that the run took.

    Returns
    -------
    Measured
        `gap_mean_jct` is how far the mean JCT lies above the clairvoyant bound, relative to the
        bound; it is left out where there is no bound.
    """
    violations = check(instance, schedule)
    metrics: dict[str, Any] = dict(summarise(instance, schedule))
    least = bounds(instance)
    metrics["restarts_per_job"] = metrics["restarts"] / metrics["jobs"]
    metrics["bound_mean_jct_s"] = least.mean_jct_s
    metrics["bound_makespan_s"] = least.makespan_s
    metrics["bound_energy_j"] = least.energy_j
    if least.mean_jct_s > 0:
        metrics["gap_mean_jct"] = metrics["mean_jct_s"] / least.mean_jct_s - 1.0
    metrics["violations"] += len(violations)  # besides those of plans that were refused
    metrics["wall_s"] = wall_s
    return Measured(metrics, violations)
