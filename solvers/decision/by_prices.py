"""Choosing every job's option by prices: the price engine on a round."""

from collections.abc import Callable
from functools import partial

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.case import Case, make_case
from ronda.formulations.allocation.conflicts import Conflict, shortages
from ronda.formulations.allocation.racks import first_fit
from ronda.formulations.allocation.regret import regrets, surpluses
from ronda.formulations.allocation.rows import separable
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.allocation.waking import Ready, begin, with_waking
from ronda.formulations.options.columns import RACK
from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Floats, Rows
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.choice import Choice
from ronda.solvers.decision.one_pool import allocate_in_one_pool
from ronda.solvers.prices.answer import ALONE, CORES, DUAL_GAP, LABELS, Answer
from ronda.solvers.prices.engine import solve_separable
from ronda.solvers.prices.jobs import Jobs, LocalJobs

JOINT = "joint"
"""Key, in a plan's details, of whether racks were chosen with the options."""

HIGHS_RETURNS_LATE_S = 0.02
"""HiGHS looks at the clock this much too late at worst, on cores of some thousand options."""


def allocate_by_prices(
    round: Round,
    table: OptionTable,
    values: Floats,
    *,
    deadline: Deadline,
    gap: float,
    seed: int,
    start: dict[str, float],
    within: float,
    reserve_s: float,
    joint: bool = False,
    ready: Ready | None = None,
    jobs: Callable[[Separable], Jobs] = LocalJobs,
) -> Choice:
    """Choose every job's option by the price engine.

    Parameters
    ----------
    round, table, values
        The round, its options and (K,) what they are worth; not to run is worth 0.
    deadline, gap, seed
        As for `ronda.solvers.prices.engine.solve_separable`.
    start
        Prices of an earlier round, by name; those of resources that are not in this round are
        ignored, and missing ones begin at zero. Prices of watts and joules take each other's
        place. Empty: none.
    within
        The dual gap of that round's choice: how far from the bound to look first.
    reserve_s
        Seconds that must be left on return.
    joint
        Whether options within a rack compete by the price of GPUs in each rack where they do not
        all find a rack without; otherwise they are chosen as if any rack had room.
    ready
        Which nodes can run jobs at once, if options are to compete for them; the choice then waits
        for others to wake where that is worth it. None: as if waking took no time.
    jobs
        Makes whoever answers for the jobs (`ronda.solvers.prices.engine.solve_separable`).
    """
    small = allocate_in_one_pool(round, table, values, deadline) if ready is None else None
    if small is not None:
        return small
    case = make_case(round, table, values)
    if ready is not None:
        case = with_waking(case, ready)
    conflicts = shortages(case)
    if conflicts:
        return _nothing(table, StopReason.INFEASIBLE, deadline.elapsed(), tuple(conflicts))
    choose = partial(
        _choose,
        values=values,
        deadline=deadline,
        gap=gap,
        seed=seed,
        start=start,
        within=within,
        reserve_s=reserve_s,
        jobs=jobs,
    )
    loose = choose(case)
    joint = joint and ready is None and bool(np.count_nonzero(table.span == RACK))
    if not joint or loose.status is SolutionStatus.NONE:
        return loose
    racks = first_fit(round.cluster.topology, table, loose.chosen)
    if racks is not None:
        return replace(loose, racks=racks, details=loose.details | {JOINT: True})
    tied = choose(make_case(round, table, values, joint=True))
    if tied.status is SolutionStatus.NONE:  # no time
        return loose
    bound = min(loose.bound, tied.bound)
    return replace(tied, bound=bound, details=tied.details | {JOINT: True})


def _choose(
    case: Case,
    *,
    values: Floats,
    deadline: Deadline,
    gap: float,
    seed: int,
    start: dict[str, float],
    within: float,
    reserve_s: float,
    jobs: Callable[[Separable], Jobs],
) -> Choice:
    """Choose by the price engine among the options, and racks, of a case."""
    problem = separable(case)
    carried = _carried(problem, start, case.round.window_s)
    build_s = deadline.elapsed()
    answer = solve_separable(
        problem,
        gap=gap,
        deadline=deadline.sooner(reserve_s + HIGHS_RETURNS_LATE_S),
        seed=seed,
        start=_start(problem, carried),
        within=within,
        jobs=jobs,
    )
    if answer.chosen is None or answer.objective is None:
        return _without(case, answer, deadline, build_s)
    chosen = _at(answer.chosen, case.rows)
    begun = None if case.waking is None else begin(case, values, answer.chosen)
    proven = answer.stop in (StopReason.GAP, StopReason.COMPLETE)
    return Choice(
        chosen=chosen if begun is None else begun.chosen,
        objective=answer.objective,
        bound=answer.bound,
        prices=named_prices(problem, answer),
        stop=answer.stop,
        status=SolutionStatus.OPTIMAL if proven else SolutionStatus.FEASIBLE,
        build_s=build_s,
        solve_s=deadline.elapsed() - build_s,
        variables=answer.columns,
        constraints=len(problem.names),
        nodes=answer.nodes,
        incumbents=((deadline.elapsed(), answer.objective),),
        solver="prices",
        message=_words(problem, answer, carried, start, within),
        details={DUAL_GAP: answer.dual_gap},
        racks=_at(answer.chosen, case.rack) if case.joint else None,
        regret=partial(_regrets, case, problem, answer),
        worth=None if begun is None else begun.worth,
        awake=None if begun is None else begun.awake,
    )


def _at(chosen: Rows, column: Rows) -> Rows:
    """Return (J,) what a column of the case says of each job's choice, -1 of no choice."""
    said = chosen.copy()
    runs = chosen >= 0
    said[runs] = column[chosen[runs]]
    return said


def named_prices(problem: Separable, answer: Answer) -> dict[str, float]:
    """Return the value of one more GPU, node, watt or joule, by constraint name."""
    return dict(zip(problem.names, answer.dual.prices.tolist(), strict=True))


def _regrets(case: Case, problem: Separable, answer: Answer, got: Rows) -> list[float]:
    """Return (J,) the regret of jobs that got some rows; options that are beaten do not count."""
    surplus, table = np.full(len(case.table), -np.inf), case.table
    np.maximum.at(surplus, case.rows, surpluses(problem, answer.dual.prices))
    found: list[float] = regrets(table.start, surplus, table.must_run, got).tolist()
    return found


POWER = ("power_cap", "energy_window")
"""The names of the one row for the tighter limit on power, in watts and in joules."""


def _carried(problem: Separable, prices: dict[str, float], window_s: float) -> dict[str, float]:
    """Return the earlier prices that still have a meaning, by the names of this problem.

    A watt throughout the window is `window_s` joules: where the cap takes the place of the energy
    budget as the tighter limit, or the other way round, its price is converted.
    """
    known = {name: prices[name] for name in problem.names if name in prices}
    for now, before, factor in zip(POWER, POWER[::-1], (window_s, 1 / window_s), strict=True):
        if now in problem.names and not known.get(now) and prices.get(before):
            known[now] = prices[before] * factor
    return known


def _start(problem: Separable, carried: dict[str, float]) -> Floats | None:
    """Return earlier prices in the order of the resources, NaN for new ones; None without any."""
    if not any(carried.values()):
        return None
    return np.array([carried.get(name, np.nan) for name in problem.names])


def _words(
    problem: Separable,
    answer: Answer,
    carried: dict[str, float],
    earlier: dict[str, float],
    within: float,
) -> str:
    """Say what was done, and what was carried over."""
    said = "prices from scratch"
    if any(carried.values()):
        new = [name for name in problem.names if name not in carried]
        said = "prices carried over" + (f", new: {', '.join(new)}" if new else "")
        said += "".join(
            f", {now} from {before}"
            for now, before in zip(POWER, POWER[::-1], strict=True)
            if carried.get(now) and not earlier.get(now)
        )
    elif earlier:
        said += " (nothing was scarce before)" if not any(earlier.values()) else ""
    said += f"; {answer.dual.evaluations} evaluations"
    if answer.search == ALONE:
        return f"{said}; {ALONE}"
    times = f"{answer.cores} {CORES}" if answer.search == CORES else answer.search
    if answer.search == LABELS and within:
        times += f" from a shortfall of {within:.1e} on"
    return f"{said}; {times} of at most {answer.columns} options"


def _nothing(
    table: OptionTable, stop: StopReason, build_s: float, conflicts: tuple[Conflict, ...] = ()
) -> Choice:
    """Return the choice of nobody, and why."""
    return Choice(
        chosen=np.full(len(table.jobs), -1, dtype=np.int64),
        stop=stop,
        status=SolutionStatus.NONE,
        build_s=build_s,
        solver="prices",
        conflicts=conflicts,
    )


def _without(case: Case, answer: Answer, deadline: Deadline, build_s: float) -> Choice:
    """Say that there is no answer: for lack of time, or proven, with what conflicts."""
    if answer.stop is not StopReason.INFEASIBLE:
        return _nothing(case.table, answer.stop, build_s)
    from ronda.formulations.allocation.pyomo_model import build_case
    from ronda.solvers.exact.infeasible import explain

    conflicts = explain(build_case(case), deadline=deadline)
    return _nothing(case.table, StopReason.INFEASIBLE, build_s, tuple(conflicts))
