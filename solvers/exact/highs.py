"""Any Pyomo model through HiGHS: solve with a start and a deadline.

The Pyomo model stays the formulation of record; HiGHS gets its arrays directly (`LinearForm`),
because Pyomo's own interfaces have no incumbent callback and redirect the process's output. One
thread always: two solves in two threads of one process can block each other indefinitely, so
nothing here may be called from two threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from pyomo.common.enums import maximize
from pyomo.common.errors import InvalidConstraintError, InvalidExpressionError
from pyomo.core.base.objective import Objective
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from ronda.formulations.clock import Deadline
from ronda.instances.arrays import Floats, Mask
from ronda.instances.errors import InputError
from ronda.instances.plan import SolutionStatus, StopReason


@dataclass(frozen=True, slots=True)
class LinearForm:
    """Max or min c'x + offset with lower ≤ Ax ≤ upper and bounds on x (n,), some x integer.

    ``columns`` and ``rows`` are the Pyomo variables and constraints in the order of the arrays.
    Row i of A has the coefficients ``value[start[i]:start[i + 1]]`` in the columns ``index[...]``.
    """

    columns: tuple[Any, ...]
    rows: tuple[Any, ...]
    maximize: bool
    cost: Floats
    offset: float
    lower: Floats
    upper: Floats
    integer: Mask
    start: NDArray[np.int32]
    index: NDArray[np.int32]
    value: Floats
    row_lower: Floats
    row_upper: Floats

    def objective(self, x: Floats) -> float:
        """Return the objective of a point."""
        return float(self.cost @ x + self.offset)


def linear_form(model: Any) -> LinearForm:
    """Read a Pyomo model with linear constraints and one linear objective.

    Fixed variables count as constants. Variables that appear nowhere are left out; a constraint
    with two different limits has two rows. InputError if an expression is not linear, a variable is
    neither continuous nor integer, or there is not exactly one active objective.
    """
    goals = list(model.component_data_objects(Objective, active=True, descend_into=True))
    if len(goals) != 1:
        raise InputError(f"model {model.name}", f"{len(goals)} objectives", "exactly one")
    try:
        read = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except (InvalidConstraintError, InvalidExpressionError) as error:
        raise InputError(f"model {model.name}", str(error), "linear expressions") from error
    kinds = np.array([row.bound_type for row in read.rows], dtype=int)  # 1: ≤, -1: ≥, 0: =
    rhs, matrix = np.asarray(read.rhs, dtype=float), read.A.tocsr()
    lower, upper, integer = _domains(read.columns)
    return LinearForm(
        columns=tuple(read.columns),
        rows=tuple(row.constraint for row in read.rows),
        maximize=goals[0].sense == maximize,
        cost=read.c.toarray()[0],
        offset=float(read.c_offset[0]),
        lower=lower,
        upper=upper,
        integer=integer,
        start=matrix.indptr,
        index=matrix.indices,
        value=matrix.data,
        row_lower=np.where(kinds <= 0, rhs, -np.inf),
        row_upper=np.where(kinds >= 0, rhs, np.inf),
    )


def _domains(variables: Sequence[Any]) -> tuple[Floats, Floats, Mask]:
    """Return bounds and integrality of variables."""
    lower, upper, integer = [], [], []
    for variable in variables:
        low, high = variable.bounds
        step = variable.domain.get_interval()[2]
        if step not in (0, 1):
            raise InputError(
                f"model: {variable.name}", "a domain of other steps", "reals or integers"
            )
        lower.append(-np.inf if low is None else low)
        upper.append(np.inf if high is None else high)
        integer.append(step == 1)
    bounds = np.array(lower, dtype=float), np.array(upper, dtype=float)
    return *bounds, np.array(integer, dtype=bool)


PROOF_GAP = 1e-9
"""Gaps below this are rounding: the solution is the optimum, not one within the gap asked for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What HiGHS made of a model.

    ``x`` (n,) has exact integers and is None without a solution; ``objective`` and ``bound`` (an
    upper one when maximising) are in the model's unit, None if not known. ``nodes`` is the size of
    the branch-and-bound tree, ``incumbents`` are pairs (seconds since the deadline's entry,
    objective), ``message`` is the solver's own words and ``solve_s`` the seconds in HiGHS.
    """

    stop: StopReason
    status: SolutionStatus
    x: Floats | None
    objective: float | None
    bound: float | None
    variables: int
    constraints: int
    nodes: int
    incumbents: tuple[tuple[float, float], ...]
    message: str
    solve_s: float


def solve_form(
    form: LinearForm,
    *,
    deadline: Deadline | None = None,
    gap: float = 1e-4,
    seed: int = 0,
    start: Floats | None = None,
    reserve_s: float = 0.0,
) -> Outcome:
    """Solve a model given as arrays; as `ronda.solvers.exact.highs.solve`, but nothing is loaded.

    `start` (n,) may be NaN for continuous variables; with an integer one NaN it does not count.
    """
    deadline = deadline or Deadline()
    left_s = deadline.left() - reserve_s
    if left_s <= 0:
        return _nothing(form, StopReason.TIME_LIMIT, "no time left to solve", 0.0)
    began = deadline.elapsed()
    highs = highs_of(form)
    _set(highs, mip_rel_gap=gap, mip_abs_gap=0.0, random_seed=seed % 2**31)
    if gap < 1e-6:
        # HiGHS takes solutions this close for equal, whatever the gap.
        _set(highs, mip_feasibility_tolerance=1e-9, primal_feasibility_tolerance=1e-9)
    if np.isfinite(left_s):
        _set(highs, time_limit=left_s)
    # A start without all integers HiGHS would complete by a MILP that may take all the time.
    if start is not None and np.isfinite(start[form.integer]).all():
        known = np.flatnonzero(np.isfinite(start))
        highs.setSolution(len(known), known.astype(np.int32), start[known])
    incumbents: list[tuple[float, float]] = []

    def improved(event: Any) -> None:
        worth = float(event.data_out.objective_function_value)
        better = worth if form.maximize else -worth
        if not incumbents or better > (incumbents[-1][1] if form.maximize else -incumbents[-1][1]):
            incumbents.append((deadline.elapsed(), worth))

    highs.cbMipImprovingSolution += improved
    highs.run()
    if highs.getModelStatus() == highspy.HighsModelStatus.kUnboundedOrInfeasible:
        # Presolve cannot tell which; the simplex method can.
        _set(highs, presolve="off")
        highs.run()
    outcome = _read(form, highs, tuple(incumbents), deadline.elapsed() - began)
    highs.disableCallbacks()  # they hold the solver, and it holds them
    return outcome


def highs_of(
    form: LinearForm, *, relaxed: bool = False, names: tuple[list[str], list[str]] | None = None
) -> Any:
    """Return a silent HiGHS that holds the model."""
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(form.cost), len(form.row_lower)
    lp.sense_ = highspy.ObjSense.kMaximize if form.maximize else highspy.ObjSense.kMinimize
    lp.col_cost_, lp.offset_ = form.cost, form.offset
    lp.col_lower_, lp.col_upper_ = form.lower, form.upper
    lp.row_lower_, lp.row_upper_ = form.row_lower, form.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = form.start, form.index
    lp.a_matrix_.value_ = form.value
    if not relaxed and form.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[i] for i in form.integer.astype(int).tolist()]
    if names is not None:
        lp.col_names_, lp.row_names_ = names
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    _set(highs, output_flag=False, threads=1)
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise InputError("model", "numbers that HiGHS refuses", "finite coefficients")
    return highs


def _set(highs: Any, **options: Any) -> None:
    """Set options; a name that HiGHS does not know is our defect."""
    for name, given in options.items():
        if highs.setOptionValue(name, given) != highspy.HighsStatus.kOk:
            raise ValueError(f"HiGHS refuses {name} = {given!r}")


_STOP = {
    highspy.HighsModelStatus.kOptimal: StopReason.COMPLETE,
    highspy.HighsModelStatus.kModelEmpty: StopReason.COMPLETE,
    highspy.HighsModelStatus.kTimeLimit: StopReason.TIME_LIMIT,
    highspy.HighsModelStatus.kSolutionLimit: StopReason.NODE_LIMIT,
    highspy.HighsModelStatus.kInfeasible: StopReason.INFEASIBLE,
}


def _read(
    form: LinearForm, highs: Any, incumbents: tuple[tuple[float, float], ...], solve_s: float
) -> Outcome:
    """Translate what HiGHS has."""
    status, info = highs.getModelStatus(), highs.getInfo()
    message = highs.modelStatusToString(status)
    stop = _STOP.get(status, StopReason.ERROR)
    feasible = info.primal_solution_status == highspy.kSolutionStatusFeasible
    if stop is StopReason.INFEASIBLE or stop is StopReason.ERROR:
        return _nothing(form, stop, message, solve_s)
    is_mip = bool(form.integer.any())
    x = objective = bound = None
    if feasible or not len(form.cost):
        x = np.array(highs.getSolution().col_value, dtype=float)
        x[form.integer] = np.round(x[form.integer])
        objective = form.objective(x)
    if is_mip and np.isfinite(info.mip_dual_bound):
        bound = float(info.mip_dual_bound)
    elif stop is StopReason.COMPLETE:
        bound = objective
    proven = stop is StopReason.COMPLETE
    if proven and is_mip and info.mip_gap > PROOF_GAP:
        stop = StopReason.GAP
    known = SolutionStatus.NONE if x is None else SolutionStatus.FEASIBLE
    return Outcome(
        stop=stop,
        status=SolutionStatus.OPTIMAL if proven and x is not None else known,
        x=x,
        objective=objective,
        bound=bound,
        variables=len(form.columns),
        constraints=len(form.rows),
        nodes=max(0, int(info.mip_node_count)),
        incumbents=incumbents,
        message=message,
        solve_s=solve_s,
    )


def _nothing(form: LinearForm, stop: StopReason, message: str, solve_s: float) -> Outcome:
    size = len(form.columns), len(form.rows)
    return Outcome(stop, SolutionStatus.NONE, None, None, None, *size, 0, (), message, solve_s)


def solve(
    model: Any,
    *,
    deadline: Deadline | None = None,
    gap: float = 1e-4,
    seed: int = 0,
    reserve_s: float = 0.0,
) -> Outcome:
    """Solve a Pyomo model and load the solution into its variables.

    Values that the variables have beforehand are the warm start, if all integer ones have one.
    Without a solution they are left as they are. The same model, seed and start give the same
    solution, unless the clock cut the search. InputError if the model is not linear.

    Parameters
    ----------
    deadline
        By when to return; None: no limit.
    gap
        Relative gap between solution and bound at which to stop.
    reserve_s
        Seconds that must be left when HiGHS returns.
    """
    form = linear_form(model)
    start = np.array([np.nan if c.value is None else c.value for c in form.columns], dtype=float)
    outcome = solve_form(
        form, deadline=deadline, gap=gap, seed=seed, start=start, reserve_s=reserve_s
    )
    if outcome.x is not None:
        for variable, number in zip(form.columns, outcome.x.tolist(), strict=True):
            variable.set_value(number, skip_validation=True)
    return outcome
