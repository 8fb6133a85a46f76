"""Cross-checks: what types and number ranges cannot say about an instance or a round.

All problems of an object are found at once. Files are checked when they are read; objects that a
program builds are checked by `validate`, their types and numbers too.
"""

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.budget import budget_problems, limit_problems
from ronda.instances.rules.cluster import cluster_problems
from ronda.instances.rules.diagnose import mismatch, non_finite
from ronda.instances.rules.faults import fault_problems, out_problems
from ronda.instances.rules.jobs import cost_problems, job_problems, order_problems, truth_problems
from ronda.instances.rules.power import job_power_problems
from ronda.instances.rules.problem import Problem, as_error, show
from ronda.instances.rules.profile import curve_problems, profile_problems
from ronda.instances.rules.round import running_problems, state_problems
from ronda.instances.schedule import Schedule

Document = Instance | Round | Plan | Schedule
Kind = TypeVar("Kind", bound=Instance | Round | Plan | Schedule)


def validate(obj: Document, place: str | None = None) -> None:
    """Refuse an object, from a file or built in Python, that has any problem.

    Raises
    ------
    InputError
        Names `place` (None: its kind and name) and the problems, on one line.
    """
    found = problems(obj)
    if found:
        raise as_error(place or name_of(obj), found)


def problems(obj: Document) -> list[Problem]:
    """Return everything that is wrong with an object.

    A wrong type or number hides the rest: it is then the only problem in the list.
    """
    try:
        normal(obj)
    except MalformedError as error:
        return [error.problem]
    return cross_problems(obj)


def cross_problems(obj: Document) -> list[Problem]:
    """Return what is inconsistent in an object whose types and numbers are known to be right.

    Plans and schedules are consistent or not only with their round or instance: see
    `ronda.instances.check.answer`.
    """
    if isinstance(obj, Instance):
        found = list(_instance(obj))
        powers = job_power_problems(obj.budget, obj.cluster, obj.jobs, obj.profiles)
        return found or list(powers)
    return list(_round(obj)) if isinstance(obj, Round) else []


class MalformedError(Exception):
    """An object, or a text, that the types of a format forbid."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem)


def normal(obj: Kind) -> Kind:
    """Return an equal object whose every value has exactly its field's type.

    A wrong type or number, NaN or infinity is a `MalformedError`.
    """
    try:
        data = msgspec.json.encode(obj)
        back = msgspec.json.decode(data, type=type(obj))
    except msgspec.ValidationError as error:
        for place, value in non_finite(obj):
            raise MalformedError(_not_finite(place, value)) from None
        raise MalformedError(mismatch(error, msgspec.json.decode(data), type(obj))) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise MalformedError(Problem("", str(error), "plain Python values")) from None
    if back != obj:
        for place, value in non_finite(obj):
            raise MalformedError(_not_finite(place, value))
    return back


def name_of(obj: Document) -> str:
    """Return what to call an object in an error."""
    kind = type(obj).__name__.lower()
    name = getattr(obj, "name", None)
    return f"{kind} {show(name)}" if name else kind


def _not_finite(place: str, value: float) -> Problem:
    return Problem(place, show(value), "a finite number")


def _instance(instance: Instance) -> Iterator[Problem]:
    broken = list(cluster_problems(instance.cluster))
    if instance.cluster.out:
        found = "GPUs out of service"
        broken.append(Problem("cluster.out", found, "none: what breaks stands in faults.outages"))
    yield from broken
    if not broken:
        yield from fault_problems(instance.faults, instance.cluster)
    yield from profile_problems(instance.profiles, instance.cluster)
    yield from curve_problems(instance.curves)
    jobs = instance.jobs
    if not jobs:
        yield Problem("jobs", "no job", "at least one: the trace or the filter left none")
    yield from cost_problems(instance.costs)

    def places(k: int) -> str:
        return f"jobs[{k}]"

    if not broken:
        yield from budget_problems(instance.budget, instance.cluster)
    yield from job_problems(jobs, places, instance.profiles, None if broken else instance.cluster)
    yield from order_problems(jobs, places)
    yield from truth_problems(jobs, places, instance.curves)


def _round(round: Round) -> Iterator[Problem]:
    broken = list(cluster_problems(round.cluster))
    if round.cluster.out and not broken:
        broken = list(out_problems(round.cluster))
    yield from broken
    yield from profile_problems(round.profiles, round.cluster)
    yield from cost_problems(round.costs)
    first_waiting = len(round.running)

    def running(k: int) -> str:
        return f"running[{k}].job"

    def waiting(k: int) -> str:
        return f"waiting[{k}].job"

    def places(k: int) -> str:
        return running(k) if k < first_waiting else waiting(k - first_waiting)

    jobs = [state.job for state in round.jobs]
    whole = msgspec.structs.replace(round.cluster, out=()) if round.cluster.out else round.cluster
    yield from job_problems(jobs, places, round.profiles, None if broken else whole)
    yield from order_problems(jobs[:first_waiting], running)
    yield from order_problems(jobs[first_waiting:], waiting)
    yield from state_problems(round)
    if not broken:
        yield from running_problems(round)
        yield from limit_problems(round)
