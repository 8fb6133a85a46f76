"""How long a policy takes to decide one generated round, placement included.

The first decision is not counted: it computes what the options of each application are.
"""

import statistics
import time
from functools import partial
from typing import Any

from ronda.instances import generate
from ronda.instances.round import Round
from ronda.solvers.contract import Deadline, Policy
from ronda.solvers.registry import policy

REPEATS = 7


def measure_policy(
    name: str, jobs: int, gpus: int | None, severity: str, seed: int
) -> dict[str, Any]:
    """Decide a round several times and return the medians."""
    round_ = generate.round(jobs, gpus, severity, seed)
    made = policy(name)
    plan = made.plan(round_, deadline=Deadline(), seed=0)
    runs = [_decide(made, round_) for _ in range(REPEATS)]
    return {
        "gpus": round_.cluster.gpus,
        "severity": severity,
        "options": plan.record.options,
        **{key: statistics.median(run[key] for run in runs) for key in runs[0]},
        "gap": plan.gap,
        "status": plan.status,
        "placed": len(plan.allocations),
    }


measure_powerflow = partial(measure_policy, "powerflow")
measure_powerflow_prices = partial(measure_policy, "powerflow-prices")
measure_milp_energy = partial(measure_policy, "milp-energy")


def _decide(made: Policy, round_: Round) -> dict[str, float]:
    """Return the seconds of one decision, and of its parts."""
    deadline, began_cpu = Deadline(), time.process_time()
    plan = made.plan(round_, deadline=deadline, seed=0)
    return {
        "total_s": deadline.elapsed(),
        "cpu_s": time.process_time() - began_cpu,
        "build_s": plan.record.build_s,
        "solve_s": plan.record.solve_s,
        "extract_s": plan.record.extract_s,
    }
