"""Values on the scale of a base round, so that plans of different rounds can be compared.

`rank` and other objectives value a job's speed by all jobs and GPUs of the round. In a larger
cluster each GPU has less value, so that the same plan seems worse, and the objectives of two rounds
cannot be compared. Here the price of a job, which multiplies its rate, comes from one round, the
base, and stays the same in all other rounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ronda.formulations.objectives.by_name import (
    OBJECTIVES,
    objective_of,
    parameters,
    with_stops,
)
from ronda.formulations.objectives.outlook import Outlook
from ronda.formulations.objectives.reservation import Reservation, less_reserved, reservation
from ronda.formulations.objectives.switching_cost import pause_share
from ronda.instances.base import Floats
from ronda.instances.errors import InputError


@dataclass(frozen=True, slots=True)
class Scale:
    """The prices of progress in a round.

    ``price`` maps each job to the value of a unit of its work per second. ``head`` is the
    reservation of the job ``gang``. ``parameters`` are the parameters of the objective, and
    ``horizon_s`` is the longest time in seconds that allocations last. ``held`` maps each running
    job to the rest of its pause in seconds and the loss by a stop.
    """

    objective: str
    parameters: Mapping[str, float | None]
    horizon_s: float
    price: Mapping[str, float]
    head: Reservation | None = None
    gang: str = ""
    held: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def scale_of(o: Outlook, objective: str, given: Mapping[str, float | None]) -> Scale:
    """Return the scale of a round.

    Raises
    ------
    InputError
        If the values of the objective are not a price per job times the rate.
    """
    form = objective_of(objective)
    if not form.priced:
        known = ", ".join(name for name, each in OBJECTIVES.items() if each.priced)
        expected = f"one whose values are a job's price times its rate: {known}"
        raise InputError("objective", objective, expected)
    worth = _worth(o, objective, given)
    head = reservation(o, worth)
    gang = "" if head is None else o.table.jobs[head.job].job.id
    lost = with_stops(form, o, worth, np.zeros(len(worth)))
    held = {
        o.table.jobs[j].job.id: (o.table.jobs[j].rest_at(o.round.now_s), float(lost[k]))
        for k in np.flatnonzero(o.table.current).tolist()
        for j in (int(o.table.job[k]),)
    }
    return Scale(objective, dict(given), o.horizon_s, _prices(o, worth), head, gang, held)


def with_newcomers(scale: Scale, o: Outlook) -> Scale:
    """Return the scale with the jobs that it lacks added, at their prices in the given round."""
    worth = _worth(o, scale.objective, scale.parameters)
    return replace(scale, price={**_prices(o, worth), **scale.price})


def frozen_values(o: Outlook, scale: Scale) -> Floats:
    """Return the values of a round's options on a scale that has all its jobs, shape (K,).

    An option that the base has as well keeps its value. If a job runs in the base and not here,
    because its nodes are gone, each of its options counts as a change of the former option.
    """
    jobs, by_row = o.table.jobs, o.table.job
    price = np.array([scale.price.get(state.job.id, 0.0) for state in jobs], dtype=float)
    gone = [state.job.id in scale.held and state.allocation is None for state in jobs]
    held = [scale.held.get(state.job.id, (0.0, 0.0)) for state in jobs]
    rest, lost = np.array(held, dtype=float).reshape(-1, 2).T
    run_s = o.by_row(o.remaining) / o.table.rate
    extra_s = np.maximum(o.left_s - run_s - rest[by_row], 0.0)
    changed = o.table.rate * (1.0 - pause_share(extra_s, run_s, o.horizon_s))
    stopped = np.array(gone, dtype=bool)[by_row]
    worth = price[by_row] * np.where(stopped, changed, o.rate)
    head, places = scale.head, [state.job.id for state in jobs]
    if head is not None:
        head = head._replace(job=places.index(scale.gang)) if scale.gang in places else None
    found = with_stops(objective_of(scale.objective), o, worth, less_reserved(o, worth, head))
    return found + np.where(stopped, lost[by_row], 0.0)


def _worth(o: Outlook, objective: str, given: Mapping[str, float | None]) -> Floats:
    """Return the values of an objective before stops and reservations, shape (K,)."""
    chosen = parameters(objective, given)
    del chosen["horizon_s"]
    return objective_of(objective).value(o, **chosen)


def _prices(o: Outlook, worth: Floats) -> dict[str, float]:
    """Return the value divided by the rate of each job's fastest option, per job with options."""
    start = o.table.start
    rows = [int(start[j] + np.argmax(o.rate[start[j] : start[j + 1]])) for j in o.filled.tolist()]
    return {
        o.table.jobs[int(o.table.job[k])].job.id: float(worth[k] / o.rate[k])
        for k in rows
        if o.rate[k] > 0
    }
