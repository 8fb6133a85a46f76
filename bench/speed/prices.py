"""Speed of the price engine beside the monolithic model, and of building a round's problem.

The engine's time counts from the first random number: drawing the reference round, building its
arrays, dual, core and certificate. The monolithic model gets the same arrays, scaled as the
engine scales them, and its time counts from there: Pyomo model, its arrays for HiGHS, HiGHS.
Modules are loaded before the clock starts. Both run in this process, one after the other; the
engine first, so that the peak of memory is its own. CPU seconds stand beside the seconds of the
clock: on a machine with other work they tell what the clock would have said without it.
"""

from typing import Any

from msgspec.structs import replace

from ronda.bench.runs.runner import peak_rss_mib
from ronda.bench.speed.cases import tell, timed
from ronda.bench.speed.certificate import Claim, certify
from ronda.bench.speed.reference import reference
from ronda.formulations.allocation.case import make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.allocation.separable import Separable, normalise
from ronda.formulations.clock import Deadline
from ronda.formulations.objectives.forms import values
from ronda.formulations.options.build import build
from ronda.instances import generate
from ronda.instances.plan import gap_between
from ronda.instances.round import Round
from ronda.solvers.prices import Search
from ronda.solvers.prices.engine import solve_separable


def measure_prices(
    jobs: int, baseline: bool, gap: float, limit_s: float, seed: int
) -> dict[str, Any]:
    """Time the price engine on the reference round of a number of jobs."""
    tell(f"prices: {jobs:,} jobs ...")
    problem, build_s, build_cpu_s = timed(lambda: reference(jobs, seed))
    search = Search(gap=gap, seed=seed)
    answer, solve_s, solve_cpu_s = timed(lambda: solve_separable(problem, search))
    memory_mib = peak_rss_mib()
    assert answer.chosen is not None  # to run nothing is always possible here
    assert answer.blocks is not None
    assert answer.objective is not None
    claim = Claim(
        answer.chosen, answer.blocks, answer.objective, answer.dual.prices, answer.dual.bound
    )
    seen = certify(problem, claim, gap)
    for fault in seen.faults:
        tell(f"prices: {jobs:,} jobs: certificate: {fault}")
    tell(f"prices: {jobs:,} jobs: {build_s + solve_s:.3f} s, gap {answer.gap:.1e}")
    found = {
        "gpus": round(float(problem.capacity[0])),
        "options": len(problem.value),
        "total_s": build_s + solve_s,
        "build_s": build_s,
        "solve_s": solve_s,
        "gap": answer.gap,
        "peak_rss_mib": round(memory_mib, 1),
        "cpu_s": build_cpu_s + solve_cpu_s,
        "gap_asked": gap,
        "seed": seed,
        "stop": answer.stop,
        "objective": answer.objective,
        "bound": answer.bound,
        "dual_bound": seen.bound,
        "dual_gap": seen.gap,
        "certificate": not seen.faults,
        "evaluations": answer.dual.evaluations,
        "cores": answer.cores,
        "columns": answer.columns,
        "nodes": answer.nodes,
    }
    return found | (measure_monolithic(problem, gap, limit_s, seed) if baseline else {})


def measure_monolithic(problem: Separable, gap: float, limit_s: float, seed: int) -> dict[str, Any]:
    """Time the Pyomo model of the same problem in HiGHS, to the same gap."""
    # Pyomo is loaded here: the engine's peak of memory is read without it.
    from ronda.formulations.allocation.pyomo_model import answer, build_separable
    from ronda.solvers.exact.highs import solve

    tell(f"prices: {problem.jobs:,} jobs: monolithic model, at most {limit_s:g} s ...")
    (scaled, units), scale_s, scale_cpu_s = timed(lambda: normalise(problem))
    model, model_s, model_cpu_s = timed(lambda: build_separable(scaled))
    outcome, solve_s, solve_cpu_s = timed(
        lambda: solve(model, deadline=Deadline(limit_s), gap=gap, seed=seed)
    )
    total_s = scale_s + model_s + solve_s
    objective = bound = reached = None
    if outcome.bound is not None:
        bound = outcome.bound * units.value
    if outcome.x is not None:
        objective = problem.objective(*answer(model))
    if objective is not None and bound is not None:
        reached = gap_between(bound, objective)
    tell(f"prices: monolithic model: {total_s:.3f} s, {outcome.message}")
    return {
        "baseline_s": total_s,
        "baseline_cpu_s": scale_cpu_s + model_cpu_s + solve_cpu_s,
        "baseline_build_s": scale_s + model_s,
        "baseline_solve_s": solve_s,
        "baseline_objective": objective,
        "baseline_bound": bound,
        "baseline_gap": reached,
        "baseline_stop": outcome.stop,
        "baseline_nodes": outcome.nodes,
        "baseline_peak_rss_mib": round(peak_rss_mib(), 1),
    }


def measure_build(jobs: int, seed: int) -> dict[str, Any]:
    """Time what comes before a solver: options, values, case and arrays of a generated round."""
    tell(f"build: {jobs:,} jobs: generating the round ...")
    round_ = generate.round(jobs, severity="tight", seed=seed)
    table, options_s, _ = timed(lambda: build(round_))
    worth, values_s, _ = timed(lambda: values(round_, table))
    case, case_s, _ = timed(lambda: make_case(round_, table, worth))
    problem, separable_s, _ = timed(lambda: separable(case))
    total_s = options_s + values_s + case_s + separable_s
    later = _later(round_)
    _, again_s, _ = timed(lambda: build(later))
    tell(f"build: {jobs:,} jobs: {total_s:.3f} s")
    return {
        "gpus": round_.cluster.gpus,
        "options": len(table),
        "total_s": total_s,
        "build_s": total_s,
        "seed": seed,
        "options_s": options_s,
        "values_s": values_s,
        "case_s": case_s,
        "separable_s": separable_s,
        "again_s": again_s,
        "columns": len(problem.value),
        "resources": len(problem.names),
    }


def _later(round_: Round) -> Round:
    """Return the round a while later: one job in twenty is new."""
    waiting = list(round_.waiting)
    for k in range(0, len(waiting), 20):
        waiting[k] = replace(waiting[k], job=replace(waiting[k].job, id=f"new-{k}"))
    return replace(round_, now_s=round_.now_s + round_.length_s, waiting=tuple(waiting))
