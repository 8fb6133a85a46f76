"""Values on the scale of another round: what is compared must be measured alike.

`rank` and others value a job's speed by what all jobs and GPUs of a round are. In a cluster of more
GPUs each is worth less, so that the same plan seems worse, and objectives of two rounds say nothing
about each other. Here the number of a job by which its rate is multiplied is that of one round, the
base, and is kept in all others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ronda.formulations.objectives.by_name import (
    OBJECTIVES,
    Form,
    Reservation,
    form_of,
    less_reserved,
    parameters,
    reservation,
    with_stops,
)
from ronda.formulations.objectives.outlook import Outlook, pause_share
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError


@dataclass(frozen=True, slots=True)
class Scale:
    """What progress is worth in a round.

    ``price`` is, by job, what a unit of its work per second is worth; ``head`` the reservation of
    the job ``gang``; ``parameters`` those of the objective, and ``horizon_s`` for how long
    allocations last at most. ``held`` has, by job that runs, what is left of its pause in seconds,
    and what it loses by a stop.
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
        If values are not a number of the job times its rate.
    """
    form = form_of(objective)
    if not form.priced:
        known = ", ".join(name for name, each in OBJECTIVES.items() if each.priced)
        expected = f"one whose values are a job's price times its rate: {known}"
        raise InputError("objective", objective, expected)
    worth = _worth(form, o, objective, given)
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
    """Return a scale with the jobs that it lacks, as they are worth in some round."""
    worth = _worth(form_of(scale.objective), o, scale.objective, scale.parameters)
    return replace(scale, price={**_prices(o, worth), **scale.price})


def frozen_values(o: Outlook, scale: Scale) -> Floats:
    """Return (K,) the values of a round's options on a scale that has all its jobs.

    An option that the base has as well is worth the same. So is one of a job that runs in the base
    and here does not, as its nodes are gone: it counts as a change of what it had.
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
    found = with_stops(form_of(scale.objective), o, worth, less_reserved(o, worth, head))
    return found + np.where(stopped, lost[by_row], 0.0)


def _worth(form: Form, o: Outlook, objective: str, given: Mapping[str, float | None]) -> Floats:
    """Return (K,) the values of a form without what others lose."""
    chosen = parameters(objective, given)
    del chosen["horizon_s"]
    return form.value(o, **chosen)


def _prices(o: Outlook, worth: Floats) -> dict[str, float]:
    """Return the value over the rate, at each job's fastest option; not of jobs without any."""
    rows = [int(o.table.start[j] + np.argmax(o.rate[_own(o, j)])) for j in o.filled.tolist()]
    return {
        o.table.jobs[int(o.table.job[k])].job.id: float(worth[k] / o.rate[k])
        for k in rows
        if o.rate[k] > 0
    }


def _own(o: Outlook, j: int) -> slice:
    return slice(o.table.start[j], o.table.start[j + 1])
