"""Speed of the price engine on the reference round.

The reference round grows to any number of jobs and is the same everywhere, so that times can be
compared. Its jobs are of one kind of curve, and GPUs and watts couple them. For n GPUs, a clock s
(a share of full speed) and a job's drawn numbers a, w, p0, p1 and e::

    rate  = w n / (1 + a log2 n) s^e              samples/s, to be maximised in total
    power = n (p0 + p1 s^2.5)                     W
"""

from typing import Any

import numpy as np

from lab.speed.cases import case, tell, timed
from lab.speed.certificate import Claim, certify
from ronda.bench.runs.runner import peak_rss_mib
from ronda.formulations.allocation.separable import Separable, normalise
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import gap_between
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import solve_separable

GPUS, CLOCKS = 2.0 ** np.arange(7), np.linspace(0.5, 1.0, 8)
"""A job's options: 1, 2, 4, ..., 64 GPUs, and shares of full speed."""

WATTS_PER_GPU = 180.0
"""Power cap for each GPU of the cluster."""


def reference(jobs: int, seed: int = 0) -> Separable:
    """Return the reference round: twice as many GPUs as jobs, or as many for at most 64 jobs.

    A job has 56 options in the order of its GPUs and, for the same GPUs, of its clock. The drawn
    numbers are uniform: a in (0.02, 0.3), w in (0.5, 3), p0 in (60, 100), p1 in (100, 250), e in
    (0.5, 0.9), each for all jobs before the next, in this order, from numpy's
    default generator.
    """
    if jobs < 1:
        raise InputError("jobs", f"{jobs}", "at least 1")
    if seed < 0:
        raise InputError("seed", f"{seed}", "0 or more")
    rng = np.random.default_rng(seed)
    ranges = ((0.02, 0.3), (0.5, 3.0), (60.0, 100.0), (100.0, 250.0), (0.5, 0.9))
    a, w, p0, p1, e = (rng.uniform(low, high, (jobs, 1)) for low, high in ranges)
    n, s = np.repeat(GPUS, len(CLOCKS)), np.tile(CLOCKS, len(GPUS))
    rate = w * n / (1.0 + a * np.log2(n)) * s**e
    watts = n * (p0 + p1 * s**2.5)
    gpus = float(jobs if jobs <= 64 else 2 * jobs)
    return Separable.without_blocks(
        start=np.arange(jobs + 1) * len(n),
        value=rate.ravel(),
        use=np.stack([np.tile(n, jobs), watts.ravel()]),
        capacity=np.array([gpus, WATTS_PER_GPU * gpus]),
        names=("gpus", "power_cap"),
    )


@case("64,256,1024,4096,16384,65536")
def measure_prices(
    jobs: int, baseline: bool = False, gap: float = 1e-4, limit_s: float = 600.0, seed: int = 0
) -> dict[str, Any]:
    """Time the price engine on the reference round, from the first draw to the certificate.

    With --baseline: one Pyomo model in HiGHS to the same gap.
    """
    tell(f"prices: {jobs:,} jobs ...")
    problem, build_s, build_cpu_s = timed(lambda: reference(jobs, seed))
    search = Search(gap=gap, seed=seed)
    answer, solve_s, solve_cpu_s = timed(lambda: solve_separable(problem, search))
    memory_mib = peak_rss_mib()
    assert answer.chosen is not None  # to run nothing is always possible here
    assert answer.blocks is not None
    assert answer.objective is not None
    dual = answer.dual
    claim = Claim(answer.chosen, answer.blocks, answer.objective, dual.prices, dual.bound)
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
        "stop": answer.stop,
        "objective": answer.objective,
        "bound": answer.bound,
        "dual_bound": seen.bound,
        "dual_gap": seen.gap,
        "certificate": not seen.faults,
        "evaluations": dual.evaluations,
        "cores": answer.cores,
        "columns": answer.columns,
        "nodes": answer.nodes,
    }
    return found | (monolithic(problem, gap, limit_s, seed) if baseline else {})


def monolithic(problem: Separable, gap: float, limit_s: float, seed: int) -> dict[str, Any]:
    """Time the Pyomo model of the same problem in HiGHS, to the same gap."""
    # Pyomo is loaded here: the engine's peak of memory is read without it.
    from ronda.formulations.allocation.pyomo_model import answer, build_separable
    from ronda.solvers.exact.from_pyomo import solve
    from ronda.solvers.exact.linear_form import Effort

    tell(f"prices: {problem.jobs:,} jobs: monolithic model, at most {limit_s:g} s ...")
    (scaled, units), scale_s, scale_cpu_s = timed(lambda: normalise(problem))
    model, model_s, model_cpu_s = timed(lambda: build_separable(scaled))
    outcome, solve_s, solve_cpu_s = timed(
        lambda: solve(model, Effort(deadline=Deadline(limit_s), gap=gap, seed=seed))
    )
    total_s = scale_s + model_s + solve_s
    bound = None if outcome.bound is None else outcome.bound * units.value
    objective = None if outcome.x is None else problem.objective(*answer(model))
    reached = None if bound is None or objective is None else gap_between(bound, objective)
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
