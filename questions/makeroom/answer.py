"""The least harm that makes room for a waiting job, with its proof."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import pyomo.environ as pyo
from msgspec.structs import replace

from ronda.instances.arguments import checked, refuse_unfit
from ronda.instances.base import Floats, Positive, Record
from ronda.instances.clock import Deadline
from ronda.instances.errors import RondaError
from ronda.instances.plan import StopReason
from ronda.instances.snapshots.snapshot import SeenJob, Snapshot
from ronda.questions.makeroom.actions import Action, actions_of
from ronda.questions.makeroom.loose import ANY_TERMS, Loose, Measure, RoomTerms, loose_jobs
from ronda.questions.makeroom.model import Space, add_row, build, measure
from ronda.questions.makeroom.verify import faults
from ronda.questions.why.answer import waiting_job
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.outlook import FreeRoom
from ronda.questions.why.reason import dominant
from ronda.questions.why.words import many
from ronda.solvers.exact.from_pyomo import linear_form, solve
from ronda.solvers.exact.highs import reduced_costs
from ronda.solvers.exact.linear_form import Effort


class Harm(Record, frozen=True, kw_only=True):
    """The least harm that makes room for a job now, or the reason why there is none.

    Attributes
    ----------
    job, possible
        The job, and whether room can be made; False too if time was up before any was found.
    actions
        The steps, in an order in which they can be carried out; the last starts the job.
    least, bounds
        Each measure of the harm, the first to count first: GPU-seconds of work ``lost``, ``jobs``
        disturbed, their ``users``, and jobs ``stopped``; and the amount below which no other plan
        has it, given those before it.
    proved, reason
        Whether the harm is least, or that there is no room is certain, and why there is none, in a
        sentence.
    loose, unknown
        Number of running jobs that may be disturbed, and of those whose loss counts as none because
        they hold no GPUs or have only begun.
    total_s
        Time that the answer took.
    """

    job: str
    possible: bool
    actions: tuple[Action, ...] = ()
    least: dict[str, float] = {}
    bounds: dict[str, float] = {}
    proved: bool = False
    reason: str | None = None
    loose: int = 0
    unknown: int = 0
    total_s: float = 0.0


FIRST = 0.7
"""The part of the time for the choice of whom to disturb; the rest is for where they go."""

FEW = 60
"""Number of jobs that may move at first, if none may be stopped."""


class _Found(NamedTuple):
    """The best solution of a space: its measures, their bounds, its actions, and who is disturbed.

    `able` are the jobs that any best solution could disturb. A solution that disturbs job k has at
    least ``floor + dear[k]`` of the first measure.
    """

    least: dict[str, float]
    bounds: dict[str, float]
    actions: tuple[Action, ...]
    gone: list[int]
    able: list[int]
    floor: float
    dear: Floats


def _slack(value: float) -> float:
    return 1e-6 * max(1.0, abs(value))


@checked
def least_harm(
    snapshot: Snapshot,
    job: str,
    terms: RoomTerms = ANY_TERMS,
    *,
    deadline: Deadline | Positive | None = None,
) -> Harm:
    """Return what to move or stop so that a waiting job starts now, with least harm.

    A stopped job waits again. A moved job goes on at once on other nodes of the same model of GPU,
    in the same pieces. Both lose their work since they started, or since their last checkpoint.
    Jobs in slices within racks are stopped or stay.

    Parameters
    ----------
    job, terms
        The id of the job, who may be disturbed, how much, and which harm counts first.
    deadline
        Time limit in seconds, or a `Deadline` that has begun; None means no limit.

    Raises
    ------
    InputError
        If no such job waits, or the terms ask for what the cluster does not tell.
    """
    until = Deadline.of(deadline)
    for name, hint in get_type_hints(RoomTerms, include_extras=True).items():
        refuse_unfit(name, getattr(terms, name), hint)
    asked = waiting_job(snapshot, job)
    snapshot = snapshot.within(asked.reservation)
    outlook = FreeRoom(snapshot)
    loose = loose_jobs(outlook, asked, terms)
    unknown = sum(not one.lost_gpu_s for one in loose)
    harm = Harm(job=job, possible=False, loose=len(loose), unknown=unknown)
    waiting, effort = WaitingJob(outlook, asked), Effort(deadline=until, gap=0.0)
    found, sure = None, True
    if waiting.start() <= waiting.now_s:
        found, sure = _best(_spaces(waiting, [], terms), effort)
    if found is None:
        found, sure = _best(_spaces(waiting, loose, terms), effort)
    if found is None:
        reason = _why_not(outlook, asked, terms, until) if sure else "Time was up."
        return replace(harm, proved=sure, reason=reason, total_s=until.elapsed())
    for fault in faults(snapshot, found.actions):
        raise RondaError(f"room for {job}: the plan found is wrong, as {fault}")
    return replace(
        harm,
        possible=True,
        actions=found.actions,
        least=found.least,
        bounds=found.bounds,
        proved=sure,
        total_s=until.elapsed(),
    )


def _spaces(waiting: WaitingJob, loose: Sequence[Loose], terms: RoomTerms) -> list[Space]:
    """Return a space for each way in which the job may run, without equal ones."""
    found = {}
    for asked in waiting.asked() if waiting.ready() <= waiting.now_s else ():
        key = (asked.nodes.tobytes(), *(repr(limit) for limit in asked.limits))
        found[key] = Space(waiting.outlook, asked, loose, terms)
    return list(found.values())


def _best(spaces: Sequence[Space], effort: Effort) -> tuple[_Found | None, bool]:
    """Return the solution of least harm over all spaces, and whether that is certain."""
    best: _Found | None = None
    sure = True
    for space in spaces:
        found, known = _search(space, effort)
        sure &= known
        if found is not None and (best is None or _less(found.least, best.least)):
            best = found
    return best, sure


def _less(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Return whether one harm is less than another: by the first measure that differs."""
    for name, value in one.items():
        if abs(value - other[name]) > _slack(value):
            return value < other[name]
    return False


def _search(space: Space, effort: Effort) -> tuple[_Found | None, bool]:
    """Return the solution of least harm of a space, and whether that is certain.

    Whom to disturb is decided first, as if all of them stopped. No move makes that harm less, as it
    loses as much and takes room. If all of them can move, that is least by every order of measures.
    Otherwise it is least but for `stopped`.
    """
    terms = space.terms
    plain = [name for name in terms.order if name != "stopped"]
    anyhow = dataclasses.replace(space, terms=replace(terms, moves_only=False))
    most = dataclasses.replace(effort, deadline=effort.deadline.share(FIRST))
    found, sure = _in_turn(build(anyhow, moves=False), plain, most)
    if found is None or not found.gone:
        return found, sure
    model = build(anyhow.only(found.gone), moves=True)
    moved, known = _in_turn(model, ["stopped"], effort, found)
    if moved is not None and not moved.least["stopped"]:
        return moved, sure
    if terms.moves_only or terms.least == "stopped":
        alone = dataclasses.replace(space, terms=replace(terms, moves_only=True))
        last, known = _moving(alone, plain, effort, found)
        if last is not None or terms.moves_only:
            return last, known
        return _in_turn(build(space, moves=True), terms.order, effort)
    if found.able == found.gone:
        return moved, sure and known
    last, known = None, False
    if sure:
        model = build(space.only(found.able), moves=True)
        last, known = _in_turn(model, ["stopped"], effort, found)
    if known and last is not None:
        return last, sure
    tried: list[_Found] = [one for one in (last, moved, found) if one is not None]
    best = min(tried, key=lambda one: one.least["stopped"])
    return best._replace(bounds=best.bounds | {"stopped": 0.0}), False


def _moving(
    space: Space, measures: Sequence[Measure], effort: Effort, stops: _Found
) -> tuple[_Found | None, bool]:
    """Return the solution of least harm in which jobs are moved alone, and whether that is certain.

    Only jobs may move whose move is cheap by the bound of a solution that `stops` them. A dearer
    one is in no better solution, if what is found costs no more than the bound on it.
    """
    first, order = measures[0], np.sort(stops.dear)
    count, best = max(FEW, len(stops.gone)), None
    while True:
        reach = float(order[count - 1]) if count < len(order) else np.inf
        able = np.flatnonzero(stops.dear <= reach).tolist()
        found, sure = _in_turn(build(space.only(able), moves=True), measures, effort)
        best = found or best
        need = np.inf if best is None else best.least[first] - stops.floor
        if not sure or reach == np.inf or need <= reach:
            return best, sure
        wide = 0 if best is None else int(np.searchsorted(order, need, side="right")) + 1
        count = max(4 * count, wide)


def _in_turn(
    model: Any | None, measures: Sequence[Measure], effort: Effort, known: _Found | None = None
) -> tuple[_Found | None, bool]:
    """Return the solution of a model that is least by one measure after another, and if that is so.

    All measures of a `known` solution stay at most as large as there.
    """
    if model is None:
        return None, True
    space: Space = model.space
    bounds, sure, relaxed = dict[str, float](), True, None
    solved = alone = False
    if known is not None:
        bounds |= {name: bound for name, bound in known.bounds.items() if name not in measures}
        for name in bounds:
            most = known.least[name]
            add_row(model, measure(model, name), most + _slack(most))
    for name in measures:
        each = measure(model, name)
        if solved and not (value := _value(each)):
            bounds[name] = value
            add_row(model, each, _slack(value) / 2)
            continue
        model.del_component("harm")
        model.harm = pyo.Objective(expr=pyo.quicksum(a * x for a, x in each))
        form = linear_form(model)
        outcome = solve(model, effort)
        if outcome.x is None:
            sure &= outcome.stop is StopReason.INFEASIBLE
            if not solved:
                return None, sure
            bounds[name] = 0.0
            continue
        solved, value = True, _value(each)
        bounds[name] = max(0.0, min(value, outcome.bound or 0.0))
        sure &= value - bounds[name] <= _slack(value)
        add_row(model, each, value + _slack(value) / 2)
        if relaxed is not None and name == measures[-1]:
            break
        floor, dear = reduced_costs(form, effort)
        own = {id(x): cost for x, cost in zip(form.columns, dear.tolist(), strict=True)}
        if relaxed is None:
            costs = [own.get(id(gone), 0.0) for gone in model.gone.values()]
            relaxed = floor, np.array(costs)
        for x in (*model.gone.values(), *model.put.values()):
            if floor + own.get(id(x), 0.0) > value + 2 * _slack(value):
                x.fix(0)
        if alone := name == "lost" and known is None and _alone(model, effort):
            bounds |= {
                rest: _value(measure(model, rest)) for rest in measures if rest not in bounds
            }
            break
    least: dict[str, float] = {n: _value(measure(model, n)) for n in space.terms.order}
    gone = [k for k, one in model.gone.items() if round(pyo.value(one))]
    able = gone if alone else [k for k, one in model.gone.items() if not one.fixed]
    ordered = {name: bounds.get(name, 0.0) for name in least}
    floor, dear = relaxed or (0.0, np.zeros(len(model.gone)))
    return _Found(least, ordered, actions_of(model), gone, able, floor, dear), sure


def _alone(model: Any, effort: Effort) -> bool:
    """Return whether no other solution as good leaves one of the jobs alone that are disturbed.

    One that disturbs all of them and more is worse by the measures that follow.
    """
    gone = [one for one in model.gone.values() if round(pyo.value(one))]
    if len(model.moved) or not any(one.lost_gpu_s for one in model.space.loose) or not gone:
        return False
    kept = {id(x): x.value for x in model.component_data_objects(pyo.Var)}
    model.other = pyo.Constraint(expr=sum(gone) <= len(gone) - 1)
    outcome = solve(model, effort)
    model.del_component("other")
    for x in model.component_data_objects(pyo.Var):
        x.set_value(kept[id(x)])
    return outcome.stop is StopReason.INFEASIBLE


def _value(terms: Sequence[tuple[float, Any]]) -> float:
    return sum(a * float(x.value or 0.0) for a, x in terms)


def harm_said(harm: Harm) -> str:
    """Return the actions and the harm of an answer in a few words, beginning with a verb."""
    stops, jobs = round(harm.least["stopped"]), round(harm.least["jobs"])
    told = [f"stop {many(stops, 'job')}"] * bool(stops)
    told += [f"move {many(jobs - stops, 'job')}"] * (jobs > stops)
    users, lost = round(harm.least["users"]), harm.least["lost"] / 3600
    of = f" of {many(users, 'user')}" if users else ""
    return f"{' and '.join(told) or 'disturb nobody'}{of}; {lost:.3g} GPU-hours of work are lost"


def _why_not(outlook: FreeRoom, job: SeenJob, terms: RoomTerms, until: Deadline) -> str:
    """Return why no room can be made: what holds the job back without all that may be disturbed."""
    loose = {one.job.id for one in loose_jobs(outlook, job, terms)}
    waiting = WaitingJob(outlook, job).without(loose)
    if waiting.start() > waiting.now_s:
        without = f"Even without {many(len(loose), 'job')} that may be disturbed it"
        return f"{without} could not start now. {dominant(waiting).text}"
    wider = replace(terms, most_jobs=None, most_gpus=None, moves_only=False)
    if wider != terms:
        least = least_harm(outlook.snapshot, job.id, wider, deadline=until)
        if least.possible:
            return f"The terms forbid it. Without them one would {harm_said(least)}."
    return "The budgets of disruption, or the guarantees of tenants, forbid it."
