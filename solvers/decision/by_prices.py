"""The choice of every job's option by the price engine."""

from collections.abc import Mapping, Sequence
from dataclasses import replace as with_fields
from functools import partial
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import Case, Fidelity, make_case
from ronda.formulations.allocation.racks import fit_racks, stays
from ronda.formulations.allocation.rows import is_limit, seconds_of, separable, shortages
from ronda.formulations.allocation.separable import (
    Separable,
    normalise,
    regrets,
    surpluses,
)
from ronda.formulations.allocation.waking import Ready, begin, with_waking
from ronda.formulations.options.table import RACK, OptionTable
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import OutOfTimeError
from ronda.instances.plan import PlanMemory, SolutionStatus, SolveRecord, StopReason, gap_between
from ronda.instances.round import Round
from ronda.solvers.decision.metered import Metered
from ronda.solvers.decision.plan import Choice, nobody, taken
from ronda.solvers.prices.core import ALONE, CORES, LABELS
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import Answer, solve_separable

PROOFS = {ALONE: "cuts", LABELS: LABELS, CORES: "highs"}
"""The proof of a gap that prices do not close, keyed by the search that decided the open jobs."""


class LastGap(PlanMemory, frozen=True):
    """The relative gap that prices alone proved, from which the next round begins."""

    key: ClassVar[str] = "last_gap"

    dual_gap: float = 0.0


def allocate_by_prices(
    round: Round,
    table: OptionTable,
    values: Floats,
    search: Search,
    *,
    joint: bool = False,
    ready: Ready | None = None,
    awake: tuple[int, ...] | None = None,
) -> Choice:
    """Choose every job's option by the price engine.

    Parameters
    ----------
    round, table, values
        The round, its options and their values, shape (K,). A waiting job has value 0.
    search
        Search settings. Start prices of watts and joules are converted into each other.
    joint
        Whether GPUs have a price per rack, for options within a rack, if not all of these options
        find a rack otherwise. False: options are chosen as if every rack had room.
    ready
        The nodes that can run jobs now, if options compete for them or may wait until other nodes
        wake. None: waking takes no time.
    awake
        The most nodes of each pool that may be awake, shape (P,), if nodes may sleep. None: all.
    """
    case = make_case(round, table, values, awake=awake)
    if ready is not None:
        case = with_waking(case, ready)
    conflicts = shortages(case)
    if conflicts:
        return nobody(table, StopReason.INFEASIBLE, search, conflicts)
    loose = _choose(case, values, search)
    joint = joint and ready is None and bool(np.count_nonzero(table.span == RACK))
    if not joint or loose.status is SolutionStatus.NONE:
        return loose
    if fit_racks(round.cluster.topology, table, loose.chosen):
        return replace(loose, details=replace(loose.details, joint=True))
    try:
        case = make_case(round, table, values, Fidelity.RACKS, awake=awake)
        tied = _choose(case, values, search)
    except OutOfTimeError:
        return loose
    if tied.status is SolutionStatus.NONE:  # out of time
        return loose
    # In this model jobs on several nodes stay where they are; a plan may move them.
    moves = np.count_nonzero(stays(table, case.rows) & ~table.must_run[case.job])
    bound = max(loose.bound if moves else min(loose.bound, tied.bound), tied.objective)
    dual = loose.dual if moves else min(loose.dual, tied.dual)
    details = replace(tied.details, joint=True)
    tied = replace(tied, bound=bound, dual=dual, details=details)
    return tied.judged(search.gap)


def _choose(whole: Case, values: Floats, search: Search) -> Choice:
    """Choose among the options and racks of a case by the price engine."""
    cases, deadline = Metered(whole, search), search.deadline
    for case in cases:
        problem = separable(case)
        carried = _carried(problem, search.start, case.round.window_s)
        build_s = deadline.elapsed()
        sooner = deadline.sooner(search.reserve_s)
        answer = solve_separable(problem, with_fields(search, start=carried, deadline=sooner))
        if answer.chosen is None or answer.objective is None:
            cases.choice = _without(case, answer, search)
            continue
        gap = gap_between(answer.bound, answer.objective)
        if answer.stop is StopReason.TIME_LIMIT and gap > 0.5:
            # It is better to start jobs as requested.
            cases.choice = nobody(case.table, answer.stop, search)
            continue
        begun = None if case.waking is None else begin(case, values, answer.chosen)
        cases.choice = Choice(
            chosen=taken(answer.chosen, case.rows) if begun is None else begun.chosen,
            objective=answer.objective,
            bound=answer.bound,
            dual=answer.dual.bound,
            proof=PROOFS[answer.search],
            prices=problem.named(answer.dual.prices),
            stop=answer.stop,
            scale=case.scale,
            incumbents=((deadline.elapsed(), answer.objective),),
            memory=LastGap(answer.dual_gap or 0.0).noted(),
            regret=partial(_regrets, case, problem, answer),
            record=SolveRecord(
                build_s=build_s,
                solve_s=deadline.elapsed() - build_s,
                variables=answer.columns,
                constraints=len(problem.names),
                nodes=answer.nodes,
                solver="prices",
                message=_words(problem, answer, carried, search),
            ),
            racks=taken(answer.chosen, case.rack) if case.joint else None,
            worth=None if begun is None else begun.worth,
            awake=None if begun is None else begun.awake,
        ).judged(search.gap)
    return cases.choice


def _regrets(case: Case, problem: Separable, answer: Answer, got: Rows) -> list[float]:
    """Return the regret of each job for its row `got`, shape (J,), without beaten options."""
    surplus, table = np.full(len(case.table), -np.inf), case.table
    np.maximum.at(surplus, case.rows, surpluses(problem, answer.dual.prices))
    found: list[float] = regrets(table.start, surplus, table.must_run, got).tolist()
    return found


def _carried(problem: Separable, prices: Mapping[str, float], window_s: float) -> dict[str, float]:
    """Return the earlier prices that are still valid, keyed by the names of a problem.

    A watt over a time is a number of joules. So if another limit on the cluster's power or energy
    becomes the tightest, the earlier limit's price is converted to it.
    """
    known = {name: prices[name] for name in problem.names if name in prices}
    for now, before in _in_place_of(problem.names, prices):
        known[now] = prices[before] * seconds_of(before, window_s) / seconds_of(now, window_s)
    return known


def _in_place_of(names: Sequence[str], prices: Mapping[str, float]) -> list[tuple[str, str]]:
    new = [name for name in names if is_limit(name) and not prices.get(name)]
    gone = [n for n, price in prices.items() if price and is_limit(n) and n not in names]
    return list(zip(new, gone, strict=False))


def _words(problem: Separable, answer: Answer, carried: Mapping[str, float], search: Search) -> str:
    """Return a message about the search and about the prices that were carried over."""
    said, earlier = "prices from scratch", search.start
    if any(carried.values()):
        new = [name for name in problem.names if name not in carried]
        said = "prices carried over" + (f", new: {', '.join(new)}" if new else "")
        instead = _in_place_of(problem.names, earlier)
        said += "".join(f", {now} from {before}" for now, before in instead)
    elif earlier:
        said += " (nothing was scarce before)" if not any(earlier.values()) else ""
    said += f"; {answer.dual.evaluations} evaluations"
    said += f" in {answer.parts} parts" if answer.parts > 1 else ""
    if answer.search == ALONE:
        return f"{said}; {ALONE}"
    times = f"{answer.cores} {CORES}" if answer.search == CORES else answer.search
    if answer.search == LABELS and search.within:
        times += f" from a shortfall of {search.within:.1e} on"
    return f"{said}; {times} of at most {answer.columns} options"


def _without(case: Case, answer: Answer, search: Search) -> Choice:
    """Return the choice for no answer, due to lack of time or to proven conflicts."""
    if answer.stop is not StopReason.INFEASIBLE:
        return nobody(case.table, answer.stop, search)
    from ronda.solvers.exact.infeasible import conflicts
    from ronda.solvers.exact.linear_form import form_of

    problem, _ = normalise(separable(case, both_limits=True))
    form = form_of(problem, [state.job.id for state in case.table.jobs])
    found = conflicts(form, search.deadline)
    return nobody(case.table, StopReason.INFEASIBLE, search, found)
