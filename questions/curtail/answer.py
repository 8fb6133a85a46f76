"""The supply curve of flexible power of a round."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_fields
from math import floor, inf, log10
from typing import Annotated

import numpy as np
from msgspec.structs import replace

from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import TOLERANCE, drawn_w
from ronda.horizon.solve import ROUND
from ronda.instances.arguments import checked
from ronda.instances.base import Index, Positive
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.questions.curtail.curve import Bearer, Curtailment, Shed
from ronda.questions.curtail.sweep import FallingCaps
from ronda.questions.curtail.swift import least_w, swift, where_jobs_are
from ronda.questions.whatif.frozen import GAP, Frozen, Judged, freeze
from ronda.solvers.applied_rules import broken_rules
from ronda.solvers.as_one import AsOne
from ronda.solvers.contract import Policy
from ronda.solvers.decision.plan import Question
from ronda.solvers.registry import as_policy
from ronda.solvers.rules import with_rules

Progress = Callable[[float, str], None]

TRIES = 4
"""The most plans that are tried at a cap for jobs that keep their nodes."""


@checked
def curtail(
    round: Annotated[Round, ROUND],
    *,
    for_s: Positive = 3600.0,
    points: Index = 10,
    less: Sequence[Positive] = (),
    within_s: Positive | None = None,
    check_at: Index = 0,
    policy: Policy | str = "prices",
    seed: Index = 0,
    time_limit_s: Positive | None = 10.0,
    initial: Plan | None = None,
    progress: Progress | None = None,
) -> Curtailment:
    """Return what each kilowatt less costs over a window, and who bears it.

    Options keep the values of the round as it is. One pass over falling power caps gives a plan at
    each, and prices that bound what any plan is worth at all caps.

    Parameters
    ----------
    for_s, within_s
        Seconds of the window, for the progress that jobs lose, and within which the reduction is to
        be reached (`ronda.questions.curtail.swift`).
    points, less
        About how many reductions are tried, in equal steps down to the least power, and those to
        try besides: watts or, up to 1, shares of the power of the plan as it is.
    check_at
        The number of points, spread over the curve, at which a plan is also solved for anew.
    policy, time_limit_s
        Policy that chooses by values, such as ``prices`` or ``milp``, for the plan as it is and for
        those that are solved for anew, and the time limit for each.
    initial
        Previous plan, which holds the ages of jobs.
    progress
        Function that is called with the share of finished plans and the name of the next one.

    Raises
    ------
    InputError
        If the policy does not choose by values, nothing runs that could be shed in time, or a
        reduction in `less` is more than can be shed.
    RondaError
        If there is no plan for the round as it is.
    """
    valid, told = validate(round), progress or (lambda share, what: None)
    made, now_w = as_policy(policy), drawn_w(round, round.held, None)
    if within_s is not None:
        if not round.running:
            raise InputError("--within", "a round in which no job runs", "one whose jobs run")
        made = with_rules(made, [swift(within_s)], "--within")
        valid = replace(valid, power_cap_w=min(now_w, valid.power_cap_w or now_w))
    told(0.0, "the round as it is")
    frozen = freeze(made, valid, seed, time_limit_s, initial)
    frozen = with_fields(frozen, made=with_fields(frozen.made, gap=getattr(made, "gap", GAP)))
    base = frozen.as_it_is(valid, initial)
    if within_s is not None:
        base = with_fields(base, plan=where_jobs_are(valid, base.plan))
    top_w = drawn_w(valid, base.plan.allocations, base.plan.asleep)
    began = time.perf_counter()
    asked = frozen.question(AsOne(replace(valid, power_cap_w=top_w)).round, initial=initial)
    floor_w = min(top_w, least_w(asked.round, asked.table, within_s))
    sheds = []
    if floor_w < top_w * (1 - TOLERANCE):
        pass_ = _Pass(frozen, base, asked, FallingCaps(asked, time_limit_s), floor_w, within_s)
        caps = [top_w - less_w for less_w in _reductions(top_w, floor_w, points, less)]
        for k, cap_w in enumerate(caps):
            told(0.2 + 0.4 * k / len(caps), f"{cap_w:,.0f} W")
            pass_.at(cap_w)
        sheds = pass_.curve(top_w, for_s)
    found = Curtailment(
        round=round,
        plan=base.plan,
        drawn_w=top_w,
        worth=base.objective,
        slack=base.bound - base.objective,
        floor_w=floor_w,
        for_s=for_s,
        within_s=within_s,
        borne_by=kind_of_bearers(round),
        sheds=tuple(sheds),
        pass_s=time.perf_counter() - began,
    )
    return _solved_anew(found, frozen, base, check_at, told)


@dataclass
class _Pass:
    """The pass over falling power caps: the plans that hold, in order."""

    frozen: Frozen
    base: Judged
    asked: Question
    sweep: FallingCaps
    floor_w: float
    within_s: float | None

    def __post_init__(self) -> None:
        self.seen = AsOne(replace(self.base.round, power_cap_w=self.asked.round.power_cap_w))
        self.plans: list[tuple[float, tuple[Plan, float] | None]] = []

    def at(self, cap_w: float) -> None:
        """Find a plan at a cap; it counts only if the checker finds no fault."""
        round, held = replace(self.base.round, power_cap_w=cap_w), None
        for shown, told in self._tried(round, cap_w):
            if not check(round, told) and not broken_rules(self.frozen.extra, round, told):
                held = told, self.frozen.worth(self.asked, shown)
        self.plans.append((cap_w, held))

    def _tried(self, round: Round, cap_w: float) -> Iterator[tuple[Plan, Plan]]:
        """Yield plans at a cap, as the policy sees them and as they are.

        Where jobs keep their nodes, more nodes stay awake than their GPUs fill. The watts of these
        are left to them in another try.
        """
        less_w = 0.0
        for _ in range(TRIES):
            shown = self.sweep.at(cap_w - less_w)
            if shown is None:
                return
            told = self.seen.told(shown)
            if self.within_s is not None:
                told = where_jobs_are(round, told)
            yield shown, told
            over_w = drawn_w(round, told.allocations, told.asleep) - cap_w
            less_w += over_w
            if over_w <= cap_w * TOLERANCE or cap_w - less_w < self.floor_w:
                return

    def curve(self, top_w: float, for_s: float) -> list[Shed]:
        """Return the points, each with the best of all plans that draw no more."""
        round, table = self.asked.round, self.asked.table
        before, found = self.seen.shown(self.base.plan).allocations, list[Shed]()
        best: tuple[Plan, float] | None = None
        for k in reversed(range(len(self.plans))):
            cap_w, held = self.plans[k]
            if held is not None and (best is None or held[1] > best[1]):
                best = held
            if best is None:  # nothing holds at this cap and below
                continue
            above_w = self.plans[k - 1][0] if k else top_w
            most, above = (min(self.base.bound, self.sweep.bound(w)) for w in (cap_w, above_w))
            shed = Shed(
                less_w=top_w - cap_w,
                cap_w=cap_w,
                worth=best[1],
                most_worth=max(most, best[1]),
                price_w=(above - most) / (above_w - cap_w),
                bearers=borne(round, table, before, self.seen.shown(best[0]).allocations, for_s),
                plan=best[0],
            )
            found.append(shed)
        return found[::-1]


def _reductions(top_w: float, floor_w: float, points: int, less: Sequence[float]) -> list[float]:
    """Return ascending reductions in watts: round steps, all that there is, and those asked for."""
    most_w = top_w - floor_w
    asked = [each * top_w if each <= 1 else each for each in less]
    if asked and max(asked) > most_w * (1 + TOLERANCE):
        expected = f"at most {most_w / top_w:.1%} or {most_w:,.0f} W: all else may not be stopped"
        raise InputError("--less", f"{max(asked):,.0f} W of {top_w:,.0f}", expected)
    steps = []
    if points:
        unit = 10.0 ** floor(log10(most_w / points))
        step = next(m * unit for m in (1, 2, 2.5, 5, 10) if m * unit * points >= most_w)
        steps = [k * step for k in range(1, points) if k * step < most_w * (1 - 1e-3)]
        steps.append(most_w)
    return sorted({*steps, *(min(each, most_w) for each in asked)})


def _solved_anew(
    found: Curtailment, frozen: Frozen, base: Judged, number: int, told: Progress
) -> Curtailment:
    """Return a curve some of whose points have the worth of a plan that was solved for anew."""
    sheds, began = list(found.sheds), time.perf_counter()
    number = min(number, len(sheds))
    chosen = {int(0.5 + k * (len(sheds) - 1) / max(1, number - 1)) for k in range(number)}
    for done, k in enumerate(sorted(chosen)):
        told(0.6 + 0.4 * done / number, f"anew: {sheds[k].cap_w:,.0f} W")
        judged = frozen.judged(replace(base.round, power_cap_w=sheds[k].cap_w), base.plan)
        if judged.plan.status not in (SolutionStatus.FALLBACK, SolutionStatus.NONE):
            sheds[k] = replace(sheds[k], solved=judged.objective)
    return replace(found, sheds=tuple(sheds), solve_s=time.perf_counter() - began)


Allocations = Mapping[str, Allocation]


def kind_of_bearers(round: Round) -> str:
    """Return "tenant", "user" or "partition": the first that any live job names."""
    for kind in ("tenant", "user"):
        if any(getattr(state.job, kind) is not None for state in round.jobs):
            return kind
    return "partition"


def borne(
    round: Round, table: OptionTable, before: Allocations, after: Allocations, for_s: float
) -> tuple[Bearer, ...]:
    """Return who bears the step from one plan to another, most GPU-seconds first.

    Each job runs for the whole window as the plan says, after the pause of a change, and from then
    on with the faster of both options; a job that is stopped pays for its restart. So a job is
    late by what it has lost by the end of the window, if the GPUs for the faster option are free
    then. The work that it has not done by then counts as the fewest GPU-seconds that any of its
    options takes for it.
    """
    kind, found = kind_of_bearers(round), dict[str, Bearer]()
    each = np.zeros(len(table.jobs))  # the most work per GPU-second
    np.maximum.at(each, table.job, table.rate / table.own_gpus)
    most = each.tolist()
    for j, state in enumerate(table.jobs):
        held = before.get(state.job.id), after.get(state.job.id)
        fastest = max(filter(None, held), key=lambda a: a.option.rate, default=None)
        if fastest is None:
            continue
        rate = fastest.option.rate
        ends_s, work = zip(*(_outlook(round, state, a, rate, for_s) for a in held), strict=True)
        name = str(getattr(state.job, kind) or "(none)")
        known = found.get(name, Bearer(name=name, jobs=0, delay_s=0.0, gpu_s=0.0))
        found[name] = Bearer(
            name=name,
            jobs=known.jobs + (ends_s[1] > ends_s[0]),
            delay_s=known.delay_s + ends_s[1] - ends_s[0],
            gpu_s=known.gpu_s + (work[0] - work[1]) / max(most[j], rate / fastest.option.own_gpus),
        )
    return tuple(sorted(found.values(), key=lambda bearer: (-bearer.gpu_s, bearer.name)))


def _outlook(
    round: Round, state: JobState, held: Allocation | None, rate: float, for_s: float
) -> tuple[float, float]:
    """Return the seconds until a job ends, and its work by the end of a window.

    After the window it goes on at `rate`. A job of unknown size ends when it has done as much as it
    would have done in the window at that rate.
    """
    costs, left = state.job.costs or round.costs, state.remaining_at(round.now_s)
    size = rate * for_s if left is None else left
    if held is None:
        now = state.allocation
        again_s = 0.0 if now is None else costs.restart(now.option.gpus)
        return for_s + again_s + size / rate, 0.0
    pause_s = state.pause_at(round.now_s, held.option.gpus, round.costs)
    if state.allocation is not None and state.allocation.goes_on(held):
        pause_s = state.rest_at(round.now_s)
    done = min(held.option.rate * max(0.0, for_s - pause_s), inf if left is None else left)
    if done >= size:
        return pause_s + size / held.option.rate, done
    return max(for_s, pause_s) + (size - done) / rate, done
