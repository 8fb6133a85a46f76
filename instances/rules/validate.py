"""Cross-checks of instances and rounds, beyond types and number ranges.

All problems of an object are found at once. Files are checked when they are read. `validate` checks
objects that a program builds, including their types and numbers.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import TypeVar, cast

import msgspec

from ronda.instances.check.option import completed
from ronda.instances.demand import Demand
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.budget import budget_problems, job_power_problems, limit_problems
from ronda.instances.rules.cluster import cluster_problems, fault_problems, out_problems
from ronda.instances.rules.diagnose import foreign, mismatch, non_finite
from ronda.instances.rules.hosts import need_problems, taken_problems
from ronda.instances.rules.jobs import (
    cost_problems,
    job_problems,
    order_problems,
    sweep_problems,
    truth_problems,
)
from ronda.instances.rules.order import leaving_problems, start_problems
from ronda.instances.rules.parts import asked_part_problems, part_problems
from ronda.instances.rules.priority import class_problems, priority_problems
from ronda.instances.rules.problem import DEPTH, Problem, as_error, depth, show, too_many
from ronda.instances.rules.profile import curve_problems, profile_problems, rated_problems
from ronda.instances.rules.round import measured_problems, running_problems, state_problems
from ronda.instances.rules.shapes import neighbourhood_problems, shape_problems
from ronda.instances.rules.tenants import tenant_problems, used_problems
from ronda.instances.schedule import Schedule

Document = Instance | Round | Plan | Schedule | Demand

Whole = TypeVar("Whole", bound=msgspec.Struct)
Kind = TypeVar("Kind", bound=Instance | Round | Plan | Schedule | Demand)


def validate(obj: Kind, place: str | None = None) -> Kind:
    """Return an object from a file or built in Python, or refuse it if it has any problem.

    Missing fields of a round's running jobs are completed (see `ronda.instances.check.option`).

    Raises
    ------
    InputError
        If there are problems. The one-line error names them and `place`, by default the kind and
        name.
    """
    exact(obj, place)
    return consistent(obj, place)


def exact(obj: Kind, place: str | None = None) -> Kind:
    """Return an equal object whose values have exactly the types of its fields, or refuse it."""
    try:
        return normal(obj)
    except MalformedError as error:
        raise as_error(place or name_of(obj), [error.problem]) from None


def consistent(obj: Kind, place: str | None = None) -> Kind:
    """Return a completed object, given the right types, or refuse one with inconsistencies."""
    whole, found = cross_checked(obj)
    if found:
        raise as_error(place or name_of(obj), found)
    return whole


def problems(obj: Document) -> list[Problem]:
    """Return all problems of an object.

    A wrong type or number hides all other problems and is the only one in the list.
    """
    try:
        normal(obj)
    except MalformedError as error:
        return [error.problem]
    return cross_checked(obj)[1]


def cross_checked(obj: Kind) -> tuple[Kind, list[Problem]]:
    """Return a completed object, given the right types and numbers, and its inconsistencies.

    Plans and schedules are checked against their round or instance in
    `ronda.instances.check.checker`.
    """
    if isinstance(obj, Round):
        broken = list(cluster_problems(obj.cluster))
        if not broken:
            broken = [*out_problems(obj.cluster), *part_problems(obj.cluster)]
        odd = [*profile_problems(obj.profiles, obj.cluster), *measured_problems(obj)]
        whole = obj if broken or odd else completed(obj)
        own = _round(whole, cluster=not broken, physics=not (broken or odd))
        return cast("Kind", whole), [*broken, *odd, *own]
    deep = list(_depths(obj))
    if isinstance(obj, Instance):
        found = [*deep, *_instance(obj)]
        powers = job_power_problems(obj.budget, obj.cluster, obj.jobs, obj.profiles)
        return obj, found or list(powers)
    if isinstance(obj, Demand):
        return obj, [*deep, *demand_problems(obj)]
    return obj, deep


class MalformedError(Exception):
    """An object or a text that does not fit the types of a format."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem)


def normal(obj: Whole) -> Whole:
    """Return an equal object in which every value has exactly the type of its field.

    A wrong type or number, NaN or infinity raises a `MalformedError`.
    """
    try:
        data = msgspec.json.encode(obj)
        back = msgspec.json.decode(data, type=type(obj))
    except msgspec.ValidationError as error:
        for place, value in non_finite(obj):
            raise MalformedError(_not_finite(place, value)) from None
        raise MalformedError(mismatch(error, msgspec.json.decode(data), type(obj))) from None
    except (TypeError, ValueError, RecursionError) as error:
        found = None if isinstance(error, RecursionError) else next(foreign(obj), None)
        problem = found or Problem("", str(error), "plain Python values")
        raise MalformedError(problem) from None
    if back != obj:
        for place, value in non_finite(obj):
            raise MalformedError(_not_finite(place, value))
    return back


def name_of(obj: Document) -> str:
    """Return the kind and name of an object for error messages."""
    kind = type(obj).__name__.lower()
    name = getattr(obj, "name", None)
    return f"{kind} {show(name)}" if name else kind


def _depths(obj: Document) -> Iterator[Problem]:
    """Check the nesting depth of free-form fields, as writing is recursive."""
    for field in ("made", "memory", "config"):
        found = depth(getattr(obj, field, None))
        if found > DEPTH:
            yield Problem(field, f"brackets nested {found} deep", f"at most {DEPTH} levels")


def _not_finite(place: str, value: float) -> Problem:
    return Problem(place, show(value), "a finite number")


def _instance(instance: Instance) -> Iterator[Problem]:
    broken = list(cluster_problems(instance.cluster))
    if not broken:
        broken += part_problems(instance.cluster)
    if instance.cluster.out:
        found = "GPUs out of service"
        broken.append(Problem("cluster.out", found, "none: what breaks stands in faults.outages"))
    yield from broken
    if not broken:
        yield from fault_problems(instance.faults, instance.cluster)
    yield from profile_problems(instance.profiles, instance.cluster)
    yield from rated_problems(instance.profiles)
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
    if not broken:
        yield from shape_problems(jobs, places, instance.cluster)
        yield from neighbourhood_problems(instance.site, jobs, places, instance.cluster)
        yield from asked_part_problems(jobs, places, instance.profiles, instance.cluster)
        yield from taken_problems(instance.cluster, now=False)
        yield from need_problems(jobs, places, instance.profiles, instance.cluster)
    yield from order_problems(jobs, places)
    yield from start_problems(jobs, places, instance.site, whole=True)
    yield from truth_problems(jobs, places, instance.curves)
    yield from sweep_problems(jobs, places, instance.sweeps)
    yield from tenant_problems(instance.site, jobs, places, None if broken else instance.cluster)
    yield from class_problems(instance.site)
    yield from priority_problems(jobs, places, instance.site)


def _round(round: Round, *, cluster: bool, physics: bool) -> Iterator[Problem]:
    """Check a round; `cluster` and `physics` state if its cluster and profiles are consistent."""
    yield from cost_problems(round.costs)
    first_waiting = len(round.running)

    def running(k: int) -> str:
        return f"running[{k}].job"

    def waiting(k: int) -> str:
        return f"waiting[{k}].job"

    def places(k: int) -> str:
        return running(k) if k < first_waiting else waiting(k - first_waiting)

    jobs = [state.job for state in round.jobs]
    yield from sweep_problems(jobs, places, round.sweeps)
    yield from tenant_problems(round.site, jobs, places)
    yield from used_problems(round)
    yield from class_problems(round.site)
    yield from priority_problems(jobs, places, round.site)
    whole = msgspec.structs.replace(round.cluster, out=()) if round.cluster.out else round.cluster
    yield from job_problems(jobs, places, round.profiles, whole if cluster else None)
    if cluster:
        yield from shape_problems(jobs, places, whole)
        yield from neighbourhood_problems(round.site, jobs, places, whole)
        yield from asked_part_problems(jobs, places, round.profiles, whole)
        yield from taken_problems(whole, now=True)
        yield from need_problems(jobs, places, round.profiles, whole)
    yield from order_problems(jobs[:first_waiting], running)
    yield from order_problems(jobs[first_waiting:], waiting)
    yield from state_problems(round)
    yield from start_problems(jobs, places, round.site, whole=False)
    if cluster:
        yield from leaving_problems(round)
        yield from running_problems(round, physics=physics)
        yield from limit_problems(round)


def demand_problems(series: Demand) -> Iterator[Problem]:
    """Yield the inconsistencies in a demand series."""
    try:
        datetime.fromisoformat(series.start)
    except ValueError:
        yield Problem("start", show(series.start), "a date and time such as 2020-09-01T00:00:00")
    steps = len(series.needed)
    if not steps:
        yield Problem("needed", "no step", "at least one")
    for name in ("total", "forecast", "active"):
        column = getattr(series, name)
        if len(column) != steps and (column or name == "total"):
            yield Problem(name, f"{len(column)} values for {steps} steps", "one for each step")
    for name in ("needed", "active"):
        pairs = zip(getattr(series, name), series.total, strict=False)
        for step, (nodes, total) in enumerate(pairs):
            if nodes > total:
                yield Problem(f"{name}[{step}]", f"{nodes} nodes", f"at most the {total} there are")
    yield from too_many("total", "nodes", max(series.total, default=0))
