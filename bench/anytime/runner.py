"""One decision in a process of its own: ``python -m ronda.bench.anytime.runner < request.json``.

As `ronda.bench.runs.runner`, for a round instead of an instance: the answer is a plan, and the
metrics are the policy's own account of its search.
"""

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from ronda.bench.runs.runner import Request, main, peak_rss_mib
from ronda.instances.errors import RondaError


def execute(request: Request) -> dict[str, Any]:
    """Decide a round, write the plan, and return what is known of the search.

    The clock starts once the round is read and the packages that the policy names are imported: a
    scheduler imports them once, not at each decision.
    """
    from ronda.instances.check.answer import check
    from ronda.instances.files.catalogue import load
    from ronda.instances.files.json import fingerprint, write
    from ronda.instances.round import Round
    from ronda.solvers.contract import Deadline
    from ronda.solvers.registry import policy
    from ronda.solvers.solve import solve

    case = request.case
    round_ = load(case.source)
    if not isinstance(round_, Round) or fingerprint(round_) != case.fingerprint:
        raise RondaError(f"{case.source}: the round changed while the comparison ran")
    made = policy(case.policy, **case.config)
    for package in getattr(made, "packages", ()):
        import_module("pyomo.environ" if package == "pyomo" else package)
    began = time.perf_counter()
    plan = solve(round_, made, seed=case.seed, deadline=Deadline(case.time_limit_s))
    wall_s = time.perf_counter() - began
    write(plan, Path(request.schedule))
    record = plan.record
    return {
        "jobs": len(round_.jobs),
        "objective": plan.objective,
        "bound": plan.bound,
        "incumbents": [list(pair) for pair in record.incumbents],
        "build_s": record.build_s,
        "solve_s": record.solve_s,
        "evaluations": record.nodes,
        "stop": str(plan.stop),
        "solution": str(plan.status),
        "violations": len(check(round_, plan)),
        "wall_s": wall_s,
        "peak_rss_mib": peak_rss_mib(),
    }


if __name__ == "__main__":
    sys.exit(main(execute))
