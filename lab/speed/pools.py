"""Speed of the price engine where many GPU types couple the jobs."""

from typing import Any

import numpy as np

from lab.speed.cases import case, tell, timed
from lab.speed.engine import monolithic
from ronda.bench.runs.runner import peak_rss_mib
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.allocation.uses import Uses
from ronda.formulations.clock import Deadline
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import solve_separable

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


@case("1000")
def measure_pools(
    jobs: int,
    types: int = 64,
    baseline: bool = False,
    gap: float = 1e-4,
    limit_s: float = 60.0,
    seed: int = 1,
) -> dict[str, Any]:
    """Time the price engine on jobs that many GPU types couple, to a gap or a limit.

    With --baseline: one model in HiGHS to the same gap and limit.
    """
    tell(f"pools: {jobs:,} jobs, {types} types ...")
    problem, build_s, _ = timed(lambda: many_pools(jobs, types, seed))
    search = Search(gap=gap, seed=seed, deadline=Deadline(limit_s))
    answer, solve_s, solve_cpu_s = timed(lambda: solve_separable(problem, search))
    found = {
        "gpus": round(float(problem.capacity.sum())),
        "options": len(problem.value),
        "total_s": solve_s,
        "build_s": build_s,
        "solve_s": solve_s,
        "gap": answer.gap,
        "peak_rss_mib": round(peak_rss_mib(), 1),
        "cpu_s": solve_cpu_s,
        "stop": answer.stop,
        "objective": answer.objective,
        "bound": answer.bound,
        "evaluations": answer.dual.evaluations,
        "cores": answer.cores,
        "columns": answer.columns,
    }
    return found | (monolithic(problem, gap, limit_s, seed) if baseline else {})
