"""The choice of every job's option by MILP, within a time limit and with a certified bound.

The solver, HiGHS or another one, starts from the greedy fill at the dual's prices
(`ronda.solvers.prices.fill`). The dual's bound D counts if the solver's own bound is weaker. If
time is short, the model has only as many options as can be built and started in time: those of
least *loss*. Any plan that uses an option falls short of D by at least its loss. So a plan with
options outside the model is worth at most D minus the least loss outside.
"""

import math
import sys
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import Case, make_case, restrict
from ronda.formulations.allocation.rows import gpus_by_pool, separable, shortages, within
from ronda.formulations.allocation.separable import (
    Part,
    Separable,
    independent,
    normalise,
    random_parts,
)
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import awake_for
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.clock import Deadline, OutOfTimeError
from ronda.instances.plan import SolutionStatus, SolveRecord, StopReason, trusted_bound
from ronda.instances.round import Round
from ronda.solvers.decision.metered import Metered
from ronda.solvers.decision.plan import Choice, Question, filled, later, nobody, reserve_s
from ronda.solvers.exact.backends import SOLVERS
from ronda.solvers.exact.highs import PRECISION
from ronda.solvers.exact.linear_form import Effort, LinearForm, Outcome, form_of
from ronda.solvers.prices.core import CLIQUES, blind_s
from ronda.solvers.prices.dual import Jobs, Search, bound_at
from ronda.solvers.prices.engine import first_answer, in_turn

SECONDS_PER_OPTION = 2e-5
"""The seconds per option to build a MILP through Pyomo. Arrays take a tenth of that time."""

FEWEST = 50
"""The number of options below which a MILP is not worth the remaining time."""

IMPORT_S = 0.5
"""The seconds to import a solver's package, and Pyomo for other solvers, once per process."""


def search_of(question: Question, gap: float, deadline: Deadline, **fields: Any) -> Search:
    """Return the search settings for a question's models, with more fields of `Search`."""
    kept_s = reserve_s(question)
    return Search(gap=gap, deadline=deadline, seed=question.seed, reserve_s=kept_s, **fields)


def allocate(
    round: Round, table: OptionTable, values: Floats, search: Search, starts: Sequence[Rows] = ()
) -> Choice:
    """Choose every job's option by the options' `values` (K,); a waiting job has value 0.

    `starts` are choices (J,) to start from, in addition to the greedy choice.
    """
    case = make_case(round, table, values)
    if conflicts := shortages(case):
        return nobody(table, StopReason.INFEASIBLE, search, conflicts)
    cases = Metered(case, search)
    for case in cases:
        problem = separable(case)
        answer = first_answer(problem, search)
        best = filled(case, problem, answer, search)
        if search.parts > 1:
            cases.choice = judged(_by_shares(case, problem, values, best, search), search.gap)
            continue
        best = started(case, values, best, starts)
        if not (best.incumbents and best.closed(0.0)):
            prices = answer.dual.prices
            losses = Jobs(problem).option_losses(prices)
            try:
                # Parts would not share a limit of the user's own.
                if parts := [] if case.table.own else independent(problem):
                    best = _apart(case, values, best, prices, losses, parts, search)
                else:
                    best = _searched(case, values, best, losses, search)
            except OutOfTimeError:
                best = replace(best, stop=StopReason.TIME_LIMIT)
        cases.choice = judged(best, search.gap)
    return cases.choice


def _by_shares(
    case: Case, problem: Separable, values: Floats, best: Choice, search: Search
) -> Choice:
    """Choose in random parts, each with its own MILP and its share of every resource.

    If a part has no answer in time, the greedy choice `best` is returned.
    """
    parts, chosen = random_parts(problem, search.parts, search.seed), np.full_like(best.chosen, -1)
    for part, own in in_turn(parts, search):
        began = search.deadline.elapsed()
        outcome, _ = solved(form_of(part.problem), None, len(part.options), best, own, began)
        if outcome.x is None:
            return replace(best, stop=StopReason.TIME_LIMIT)
        taken, _ = part.problem.answer(outcome.x)
        runs = taken >= 0
        chosen[part.jobs[runs]] = case.rows[part.options[taken[runs]]]
    worth, when = case.table.worth(values, chosen), search.deadline.elapsed()
    record = replace(best.record, solver=search.solver, message=f"{len(parts)} random parts")
    return replace(
        best,
        chosen=chosen,
        objective=worth,
        incumbents=((when, worth),),
        stop=StopReason.COMPLETE,
        record=record,
    )


def _apart(
    case: Case,
    values: Floats,
    best: Choice,
    prices: Floats,
    losses: Floats,
    parts: Sequence[Part],
    search: Search,
) -> Choice:
    """Improve each part of a choice by its own MILP; `prices` (R,) give the parts' bounds.

    If a part has no answer, that part's choice is returned.
    """
    found = list[Choice]()
    for part, own in in_turn(parts, search):
        chosen, mine = np.full_like(best.chosen, -1), np.zeros(len(losses), dtype=bool)
        chosen[part.jobs], mine[part.options] = best.chosen[part.jobs], True
        worth = float(values[chosen[chosen >= 0]].sum())
        dual = bound_at(part.problem, prices[part.resources])
        choice = replace(best, chosen=chosen, objective=worth, bound=max(dual, worth), dual=dual)
        choice = replace(choice, record=SolveRecord())
        if not part.jobs.size:  # a part with blocks alone already has its answer
            choice = replace(choice, incumbents=best.incumbents or ((0.0, 0.0),))
        elif not (best.incumbents and choice.closed(0.0)):
            choice = _searched(restrict(case, mine), values, choice, losses[mine], own)
        if not choice.incumbents:
            return replace(choice, record=later(best.record, choice.record))
        found.append(choice)
    stops = [each.stop for each in found if each.stop is not StopReason.COMPLETE]
    objective, bound = sum(each.objective for each in found), sum(each.bound for each in found)
    incumbents = best.incumbents
    if not incumbents or objective > best.objective:
        incumbents = (*incumbents, (search.deadline.elapsed(), objective))
    dual = math.nextafter(math.fsum(each.dual for each in found), math.inf)
    return replace(
        best,
        chosen=np.maximum.reduce([each.chosen for each in found]),
        dual=min(best.dual, dual),
        proof=next((each.proof for each in found if each.proof), best.proof),
        objective=objective,
        bound=max(min(bound, best.bound) if best.incumbents else bound, objective),
        incumbents=incumbents,
        stop=StopReason.TIME_LIMIT if StopReason.TIME_LIMIT in stops else [*stops, best.stop][0],
        details=max((each.details for each in found), key=lambda said: len(said.solver_lacks)),
        record=reduce(later, (each.record for each in found), best.record),
    )


def started(case: Case, values: Floats, greedy: Choice, starts: Sequence[Rows]) -> Choice:
    """Return the best start that certainly satisfies all constraints.

    The racks that supply a start's power are unknown, so with racks only the greedy choice counts.
    """
    best = greedy
    for chosen in starts if not case.racks else ():
        worth = case.table.worth(values, chosen)
        if (not best.incumbents or worth > best.objective) and within(case, chosen):
            best = replace(
                best,
                chosen=chosen,
                objective=worth,
                bound=max(best.bound, worth),
                incumbents=((greedy.record.build_s, worth),),
            )
    return best


def judged(choice: Choice, gap: float) -> Choice:
    """Return the choice with its final status."""
    if choice.stop is StopReason.INFEASIBLE or not choice.incumbents:
        return replace(choice, status=SolutionStatus.NONE)
    choice = choice.judged(gap)
    if choice.status is SolutionStatus.FEASIBLE:
        return choice
    record, stop = choice.record, StopReason.COMPLETE if choice.closed(0.0) else StopReason.GAP
    if choice.stop is StopReason.TIME_LIMIT:  # the search had nothing left to find
        record = replace(record, message="the bound that prices prove is met")
    return replace(choice, stop=stop, record=record)


def _searched(case: Case, values: Floats, best: Choice, losses: Floats, search: Search) -> Choice:
    """Improve a choice by a MILP over as many options as time allows.

    `losses` (n,) are the amounts by which a plan with each of the case's options falls short of the
    bound.
    """
    affordable = _affordable(len(losses), search)
    if affordable < min(FEWEST, len(losses)):
        why = "no time for a MILP"
        if _import_s(search):
            why += ", as packages would be loaded first (ronda.warm_up does it before time counts)"
        message = "; ".join(filter(None, (best.record.message, why)))
        record = replace(best.record, message=message)
        return replace(best, stop=StopReason.TIME_LIMIT, record=record)
    chosen = np.isin(case.rows, best.chosen)  # so that the model contains the incumbent
    matter, left_out = _core(losses, affordable)
    core, elsewhere = restrict(case, matter | chosen), best.bound - left_out

    began = search.deadline.elapsed()
    problem, _ = normalise(separable(core, both_limits=True))
    form = form_of(problem, [state.job.id for state in core.table.jobs])
    start = point_of(core, best.chosen)
    outcome, done = solved(form, start, len(core.rows), best, search, began)
    known = best.objective if best.incumbents else None
    if outcome.stop is StopReason.INFEASIBLE and known is None:
        from ronda.solvers.exact.infeasible import conflicts

        found = conflicts(form, search.deadline)
        done = replace(done, conflicts=tuple(found or ()))
    elif outcome.bound is not None:
        # Plans with an option outside the model are worth `elsewhere` at most.
        told = max(told_by(outcome.bound, core), elsewhere)
        done = replace(done, bound=trusted_bound(told, best.bound, known))
    if outcome.x is not None:
        rows, _ = problem.answer(outcome.x)
        rows[rows >= 0] = core.rows[rows[rows >= 0]]
        worth = core.table.worth(values, rows)
        if known is None or worth > known:
            newer = [(when, each * core.unit) for when, each in outcome.incumbents]
            better = [pair for pair in newer if known is None or pair[1] > known]
            done = replace(
                done,
                chosen=rows,
                objective=worth,
                bound=max(done.bound, worth),
                incumbents=(*best.incumbents, *better) or ((search.deadline.elapsed(), worth),),
            )
    if np.isfinite(left_out) and not done.closed(search.gap):
        return replace(done, stop=StopReason.TIME_LIMIT, conflicts=())
    return done


def _affordable(options: int, search: Search) -> int:
    left_s = search.deadline.left() / search.deadline.paced(1.0)
    left_s -= search.reserve_s + _import_s(search)
    linear, square = SECONDS_PER_OPTION, 2 / CLIQUES**2 + SOLVERS[search.solver].square_s
    most = ((linear**2 + 4 * square * max(0.0, left_s)) ** 0.5 - linear) / (2 * square)
    return int(min(most, options))


def _import_s(search: Search) -> float:
    """Return the seconds to import the modules that a MILP needs and that are not loaded yet."""
    solver = SOLVERS[search.solver]
    needs = filter(None, ("pyomo.environ" * bool(solver.through), solver.needs))
    return IMPORT_S * sum(module not in sys.modules for module in needs)


def _core(losses: Floats, size: int) -> tuple[Mask, float]:
    """Return a mask (n,) of at most `size` options of least loss, and the others' least loss."""
    if len(losses) <= size:
        return np.ones(len(losses), dtype=bool), np.inf
    # Take all options of equal loss, or none of them.
    least = float(np.partition(losses, size)[size])
    return (losses < least) | (losses <= 0), least


def solved(
    form: LinearForm,
    start: Floats | None,
    options: int,
    best: Choice,
    search: Search,
    began: float,
) -> tuple[Outcome, Choice]:
    """Solve a model of some options; return its outcome, and `best` with the time since `began`."""
    deadline, solver = search.deadline, SOLVERS[search.solver]
    effort = Effort(
        deadline=deadline,
        gap=search.gap,
        seed=search.seed,
        reserve_s=deadline.paced(search.reserve_s),
        blind_s=deadline.paced(blind_s(options) + solver.square_s * options**2),
        options=search.options,
    )
    outcome = solver.solve_form(form, effort, start)
    stop, message = outcome.stop, outcome.message
    if stop is StopReason.INFEASIBLE and best.incumbents:
        stop, message = StopReason.ERROR, f"{message}, which is not so"
    return outcome, replace(
        best,
        stop=StopReason.COMPLETE if stop is StopReason.GAP else stop,
        proof=search.solver,
        record=later(
            best.record,
            SolveRecord(
                build_s=deadline.elapsed() - began - outcome.solve_s,
                solve_s=outcome.solve_s,
                variables=outcome.variables,
                constraints=outcome.constraints,
                nodes=outcome.nodes,
                solver=search.solver,
                message=message,
            ),
        ),
        details=replace(best.details, solver_lacks=tuple(solver.lacks)),
    )


def point_of(case: Case, chosen: Rows) -> Floats:
    """Return a choice of rows (J,) as a point of the case's problem, NaN for power in racks."""
    rows = chosen[chosen >= 0]
    awake = awake_for(case.classes, gpus_by_pool(case.table, rows)) if case.sleeps else ()
    unknown, own = np.full(len(case.most_rack_kw), np.nan), case.table.own
    over = () if own is None else own.excess(rows)[own.soft]
    return np.concatenate([np.isin(case.rows, rows).astype(float), awake, unknown, over])


SMALL = 1e-3
"""The share of the largest value below which solvers may not see a value that matters."""


def told_by(bound: float, case: Case) -> float:
    """Return a solver's bound in the user's unit, plus values that are too small for the solver."""
    values = np.abs(case.value)
    tiny = bound < SMALL and (values < SMALL * case.unit).any(where=values > 0)
    return (bound + (PRECISION if tiny else 0.0)) * case.unit
