"""Speed of the price engine, and of others, where many GPU types couple the jobs."""

from typing import Any

import highspy
import numpy as np
from scipy.sparse import csc_array, vstack

from lab.speed.cases import case, tell, timed
from ronda.bench.runs.runner import peak_rss_mib
from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable, normalise, random_parts
from ronda.instances.clock import Deadline
from ronda.instances.plan import gap_between
from ronda.solvers.exact.backends import SOLVERS
from ronda.solvers.exact.highs import run, silent
from ronda.solvers.exact.linear_form import Effort, form_of
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import in_turn, solve_separable

SIZES = np.array([1.0, 2.0, 4.0, 8.0])
"""GPUs that a job may have, of any type."""


def many_pools(jobs: int, types: int, seed: int = 0) -> Separable:
    """Return a round of jobs that may have 1, 2, 4 or 8 GPUs of any of some types.

    A job is worth ``weight speed size^power``: lognormal weights of spread 1, speeds of the types
    uniform in (0.3, 1.5) times a lognormal number of the job and type of spread 0.3, powers uniform
    in (0.5, 0.95). There are 1.2 GPUs a job, and up to 7 more of each type.
    """
    rng = np.random.default_rng(seed)
    speed, weight = rng.uniform(0.3, 1.5, types), rng.lognormal(0, 1, jobs)
    rate = speed * rng.lognormal(0, 0.3, (jobs, types))
    power = rng.uniform(0.5, 0.95, jobs)
    value = (weight[:, None] * rate)[:, :, None] * SIZES ** power[:, None, None]
    capacity = max(4, int(1.2 * jobs / types)) + rng.integers(0, 8, types)
    kinds = np.arange(types * len(SIZES))
    resource, amount = kinds // len(SIZES), SIZES[kinds % len(SIZES)]
    kind = np.tile(kinds.astype(np.min_scalar_type(len(kinds))), jobs)
    return Separable.without_blocks(
        start=np.arange(jobs + 1) * types * len(SIZES),
        value=value.ravel(),
        use=Uses(types, resource[None].astype(np.int32), amount[None], kind),
        capacity=capacity.astype(float),
        names=tuple(f"gpus[{r}]" for r in range(types)),
    )


RELAXED = ("simplex", "ipm", "pdlp")
"""HiGHS's solvers of the linear relaxation."""


@case("1000")
def measure_pools(
    jobs: int,
    types: int = 64,
    solver: str = "prices",
    gap: float = 1e-4,
    limit_s: float = 60.0,
    seed: int = 1,
) -> dict[str, Any]:
    """Time a solver on jobs that many GPU types couple, to a gap or a limit.

    The price engine (prices), one model in HiGHS or another solver (highs, cp-sat, ...), its linear
    relaxation (simplex, ipm, pdlp), or random parts in HiGHS as POP does (pop-4: four).
    """
    tell(f"pools: {jobs:,} jobs, {types} types, {solver} ...")
    problem, build_s, _ = timed(lambda: many_pools(jobs, types, seed))
    search = Search(gap=gap, seed=seed, deadline=Deadline(limit_s))
    found, solve_s, cpu_s = timed(lambda: solved(problem, solver, search))
    return {
        "gpus": round(float(problem.capacity.sum())),
        "options": len(problem.value),
        "total_s": solve_s,
        "build_s": build_s,
        "solve_s": solve_s,
        "cpu_s": cpu_s,
        "peak_rss_mib": round(peak_rss_mib(), 1),
        "gap_asked": gap,
    } | found


def solved(problem: Separable, solver: str, search: Search) -> dict[str, Any]:
    """Return what a solver finds: objective, bound and gap, None where it has none."""
    if solver == "prices":
        answer = solve_separable(problem, search)
        found = {"objective": answer.objective, "bound": answer.bound, "stop": answer.stop}
        work = {"evaluations": answer.dual.evaluations, "cores": answer.cores}
        return found | work | {"columns": answer.columns, "gap": answer.gap}
    if solver in RELAXED:
        return {"bound": relaxed(problem, solver, search)}
    name, _, number = solver.partition("pop-")
    if number and not name:
        parts = random_parts(problem, int(number), search.seed)
        worth = [whole(part.problem, "highs", own)[0] for part, own in in_turn(parts, search)]
        return {"objective": None if None in worth else sum(filter(None, worth))}
    objective, bound = whole(problem, solver, search)
    gap = gap_between(bound, objective) if bound is not None and objective is not None else None
    return {"objective": objective, "bound": bound, "gap": gap}


def whole(problem: Separable, solver: str, search: Search) -> tuple[float | None, float | None]:
    """Return the objective and the bound that a solver finds for one model of a problem."""
    scaled, units = normalise(problem)
    effort = Effort(deadline=search.deadline, gap=search.gap, seed=search.seed)
    outcome = SOLVERS[solver].solve_form(form_of(scaled), effort)
    objective = None if outcome.x is None else problem.objective(*scaled.answer(outcome.x))
    return objective, None if outcome.bound is None else outcome.bound * units.value


def relaxed(problem: Separable, solver: str, search: Search) -> float | None:
    """Return the value of the linear relaxation; None if it was not solved in time."""
    counts = np.diff(problem.start)
    owner, options = np.arange(problem.jobs).repeat(counts), len(problem.value)
    one = csc_array((np.ones(options), (owner, np.arange(options))), shape=(problem.jobs, options))
    rows = csc_array(vstack([one, problem.use.sparse()]))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_, lp.sense_ = options, rows.shape[0], highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = problem.value, np.zeros(options), np.ones(options)
    lp.row_lower_ = np.full(rows.shape[0], -highspy.kHighsInf)
    lp.row_upper_ = np.concatenate([np.ones(problem.jobs), problem.capacity])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = rows.indptr, rows.indices
    lp.a_matrix_.value_ = rows.data
    highs = silent(solver=solver)
    highs.passModel(lp)
    optimal = run(highs, search.deadline.left()) == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value) if optimal else None
