"""Solution quality against time and against evaluations, for several policies on the same rounds.

One objective values every plan. The reference of a round is the least bound that any policy proved
under that objective, or the best value found if that is larger or no policy proved a bound. The
*primal gap* of a value v to the reference r (Berthold, "Measuring the impact of primal heuristics",
OR Letters 41, 2013) is::

    gap = 0 if r = v = 0;  1 if there is no plan yet, or r v < 0;  |r - v| / max(|r|, |v|) else

The gap is a step function of time that starts at 1. Its integral up to the time limit is the
*primal integral*, in equivalent seconds at a gap of 100 %. Less is better; a quick, bad decision
can score like a late, good one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.bench.runs import specs
from ronda.bench.runs.compare import Layout
from ronda.bench.runs.results import Result
from ronda.formulations.objectives.by_name import values
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import SPANS, OptionTable, rows_of
from ronda.instances.base import Floats
from ronda.instances.files.json import fingerprint
from ronda.instances.job import Option
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Policy
from ronda.solvers.decision.plan import Question
from ronda.solvers.registry import parameters_of, parse, policy

TARGETS = np.geomspace(1.0, 1e-4, 41)[1:]
"""The gaps that runs should reach, ten per decade."""


@dataclass(frozen=True, slots=True)
class Point:
    """A better plan: its seconds since entry, the evaluations until then, and its value."""

    time_s: float
    evaluations: float
    value: float


@dataclass(frozen=True, slots=True)
class Trace:
    """The improvements of one run, and the `bound` it proved under the common objective, if any.

    The points ascend in time and value; the last point is the returned plan. A failed run has no
    points, and so its gap is 1 throughout.
    """

    round: str
    label: str
    seed: int
    points: tuple[Point, ...]
    bound: float | None

    def gaps(self, reference: float) -> list[float]:
        """Return the primal gap of each point."""
        return [primal_gap(reference, point.value) for point in self.points]

    def at(self, times: Floats, reference: float, *, evaluations: bool = False) -> Floats:
        """Return the gap at each of the given times (or numbers of evaluations); it begins at 1."""
        axis = [p.evaluations if evaluations else p.time_s for p in self.points]
        steps = np.array([1.0, *self.gaps(reference)])
        return np.asarray(steps[np.searchsorted(axis, times, side="right")])

    def integral_s(self, reference: float, limit_s: float) -> float:
        """Return the primal integral from entry to the time limit."""
        edges = [0.0, *(min(p.time_s, limit_s) for p in self.points), limit_s]
        heights = [1.0, *self.gaps(reference)]
        return float(np.dot(np.diff(edges), heights))

    def arrives(self, reference: float, gap: float) -> Point | None:
        """Return the first point whose gap is at most `gap`, or None."""
        gaps = zip(self.points, self.gaps(reference), strict=True)
        return next((p for p, g in gaps if g <= gap), None)


def reached(gaps: Floats) -> Floats:
    """Return the share of pairs of a run and a target in `TARGETS` that are reached, shape (T,).

    `gaps` has shape (R, T). Over time or evaluations, this is the empirical distribution of
    runtimes (N. Hansen et al., COCO, Optimization Methods and Software 36, 2021, sec. 5).
    """
    return np.asarray((gaps[:, None, :] <= TARGETS[None, :, None]).mean(axis=(0, 1)))


def primal_gap(reference: float, value: float) -> float:
    """Return Berthold's primal gap, between 0 and 1."""
    if reference == value:
        return 0.0
    if reference * value < 0:
        return 1.0
    return abs(reference - value) / max(abs(reference), abs(value))


def cases(
    rounds: dict[str, Round],
    labels: Sequence[str],
    seeds: Sequence[int],
    *,
    objective: str,
    time_limit_s: float,
) -> tuple[specs.RunCase, ...]:
    """Return each combination of round, policy and seed; deterministic policies run once a round.

    Policies with a parameter `objective` get the common objective unless their label sets another.
    In that case only the value of their final plan is known.
    """
    return specs.cases(
        {source: (round_, fingerprint(round_)) for source, round_ in rounds.items()},
        labels,
        seeds,
        time_limit_s=time_limit_s,
        make=partial(_aimed, objective),
    )


def _aimed(objective: str, label: str) -> Policy:
    name, given = parse(label)
    own = "objective" in parameters_of(name) and "objective" not in given
    return policy(label, **({"objective": objective} if own else {}))


def traces_of(
    results: Iterable[Result], rounds: dict[str, Round], layout: Layout, objective: str
) -> list[Trace]:
    """Return the trace of every run; `rounds` maps names to rounds.

    A run that failed or returned an invalid plan has a trace without points.
    """
    found = []
    for result in results:
        if not result.ok or result.metrics["violations"]:
            found.append(Trace(result.instance, result.label, result.seed, (), None))
            continue
        plan = layout.read(result.key, Plan)
        value = plan_value(rounds[result.instance], plan, objective)
        found.append(trace_of(result, value, own=result.config.get("objective") == objective))
    return found


def trace_of(result: Result, value: float, *, own: bool) -> Trace:
    """Return the trace of one run; `own` says whether the run aimed at the common objective.

    Incumbents count only with `own`. Their times between the end of building and the end of the
    search are converted to evaluations in proportion. Incumbents are valued before they are placed
    on nodes, so none counts for more than `value`, the value of the returned plan.
    """
    told = result.metrics
    total = float(told["evaluations"])
    points: list[Point] = []
    for time_s, worth in told["incumbents"] if own else ():
        share = (time_s - told["build_s"]) / told["solve_s"] if told["solve_s"] > 0 else 1.0
        point = Point(time_s, max(1.0, total * min(max(share, 0.0), 1.0)), min(worth, value))
        if not points or point.value > points[-1].value:
            points.append(point)
    if not points or value > points[-1].value:
        points.append(Point(result.wall_s, max(1.0, total), value))
    bound = told["bound"] if own else None
    return Trace(result.instance, result.label, result.seed, tuple(points), bound)


def references(found: Sequence[Trace]) -> dict[str, float]:
    """Return the reference (see the module) of each round that has a plan."""
    made = {}
    for name in dict.fromkeys(t.round for t in found):
        own = [t for t in found if t.round == name and t.points]
        if not own:
            continue
        best = max(t.points[-1].value for t in own)
        proved = [t.bound for t in own if t.bound is not None]
        made[name] = max(best, min(proved, default=best))
    return made


def plan_value(round: Round, plan: Plan, objective: str) -> float:
    """Return the value of a plan's options under an objective, less the cost of its moves.

    The values already include switches to another option. Jobs that keep their option on other
    nodes also lose progress (`ronda.formulations.objectives.switching_cost.loss_of_moves`). Options
    that the round's table lacks (a GPU count off the ladder) are added to the table at the rate and
    power that the plan states; `ronda.check` compares these with the profile.
    """
    question = Question.of(round, objective)
    table, worth = question.table, question.values
    found = rows_of(table, plan)
    strange = {
        j: plan.allocations[state.job.id].option
        for j, state in enumerate(table.jobs)
        if found[j] < 0 and state.job.id in plan.allocations
    }
    if strange:
        table = with_options(table, strange)
        found, worth = rows_of(table, plan), values(round, table, objective)
    rows = found[[state.job.id in plan.allocations for state in table.jobs]]
    moved = [table.jobs[int(table.job[k])] for k in rows[table.current[rows]].tolist()]
    ids = tuple(
        s.job.id
        for s in moved
        if s.allocation and s.allocation.placement != plan.allocations[s.job.id].placement
    )
    return float(worth[rows].sum()) - loss_of_moves(round, table, worth, rows, ids)


def with_options(table: OptionTable, more: dict[int, Option]) -> OptionTable:
    """Return a table with one more option for some jobs, after their own rows."""
    jobs = sorted(more)
    at = table.start[np.array(jobs) + 1]
    added = np.isin(np.arange(len(table.jobs)), jobs)
    columns: dict[str, list[Any]] = {
        name: [getattr(more[j], name) for j in jobs]
        for name in ("pool", "gpus", "width", "clock", "batch", "rate", "power_w")
    }
    columns["job"], columns["current"] = jobs, [False] * len(jobs)
    columns["span"] = [SPANS.index(more[j].span) for j in jobs]
    changed: dict[str, Any] = {
        name: np.insert(getattr(table, name), at, new) for name, new in columns.items()
    }
    start = table.start + np.concatenate([[0], np.cumsum(added)])
    return replace(table, start=start, **changed)
