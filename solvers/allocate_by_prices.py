"""Choosing every job's option by prices: the price engine on a round."""

import numpy as np

from ronda.formulations.allocation_case import Case, make_case
from ronda.formulations.allocation_reading import Conflict, shortages
from ronda.formulations.options import OptionTable
from ronda.formulations.regret import surpluses
from ronda.formulations.separable import Floats, Separable
from ronda.formulations.separable_round import separable
from ronda.instances.instance import Round
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.choice import Choice
from ronda.solvers.contract import Deadline
from ronda.solvers.prices import Answer, solve_separable

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
    reserve_s: float,
) -> Choice:
    """Choose every job's option by the price engine.

    Parameters
    ----------
    round, table, values
        The round, its options and (K,) what they are worth; not to run is worth 0.
    deadline, gap, seed
        As for `ronda.solvers.prices.solve_separable`.
    start
        Prices of an earlier round, by name; those of resources that are not in this round are
        ignored, and missing ones begin at zero. Empty: none.
    reserve_s
        Seconds that must be left on return.
    """
    case = make_case(round, table, values)
    conflicts = shortages(case)
    if conflicts:
        return _nothing(table, StopReason.INFEASIBLE, deadline.elapsed(), tuple(conflicts))
    problem = separable(case)
    build_s = deadline.elapsed()
    answer = solve_separable(
        problem,
        gap=gap,
        deadline=deadline.sooner(reserve_s + HIGHS_RETURNS_LATE_S),
        seed=seed,
        start=_start(problem, start),
    )
    if answer.chosen is None or answer.objective is None:
        return _without(case, answer, deadline, build_s)
    rows = case.rows[answer.chosen]
    proven = answer.stop in (StopReason.GAP, StopReason.COMPLETE)
    return Choice(
        chosen=np.where(answer.chosen >= 0, rows, -1) if len(case.rows) else answer.chosen,
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
        message=_words(problem, answer, start),
        surplus=_surplus(case, problem, answer),
    )


def named_prices(problem: Separable, answer: Answer) -> dict[str, float]:
    """Return the value of one more GPU, node, watt or joule, by constraint name."""
    return dict(zip(problem.names, answer.dual.prices.tolist(), strict=True))


def _surplus(case: Case, problem: Separable, answer: Answer) -> Floats:
    """Return (K,) value less price of the table's options; -inf for those left out as beaten."""
    surplus = np.full(len(case.table), -np.inf)
    surplus[case.rows] = surpluses(problem, answer.dual.prices)
    return surplus


def _start(problem: Separable, prices: dict[str, float]) -> Floats | None:
    """Return earlier prices in the order of this problem's resources, None without any."""
    if not any(name in prices for name in problem.names):
        return None
    return np.array([prices.get(name, 0.0) for name in problem.names])


def _words(problem: Separable, answer: Answer, start: dict[str, float]) -> str:
    """Say what was done, and what was carried over."""
    kept = [name for name in problem.names if name in start]
    new = [name for name in problem.names if name not in start]
    carried = "prices from scratch"
    if kept:
        carried = "prices carried over" + (f", new: {', '.join(new)}" if new else "")
    return (
        f"{carried}; {answer.dual.evaluations} evaluations, {answer.cores} cores of at most "
        f"{answer.columns} options"
    )


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
    from ronda.formulations.allocation import build_case
    from ronda.solvers.explain import explain

    conflicts = explain(build_case(case), deadline=deadline)
    return _nothing(case.table, StopReason.INFEASIBLE, build_s, tuple(conflicts))
