"""How long the energy policies take to decide one generated round, placement included.

``python -m ronda.bench.speed.powerflow`` prints one JSON object per policy: `powerflow` and
`powerflow-prices` on 1,000 jobs, `milp-energy` on 400 jobs and 1,024 GPUs with about 48 options a
job before dominated ones are dropped. `total_s` is the median over some decisions in one process;
beside it the seconds of the processor, which tell on a busy machine what the clock would have
said. The first decision is not counted: it computes what the options of each application are.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from ronda.bench.runs.provenance import host
from ronda.instances import generate
from ronda.instances.round import Round
from ronda.solvers.contract import Deadline, Policy
from ronda.solvers.registry import policy
from ronda.solvers.versions import versions

CASES: dict[str, tuple[int, int | None]] = {
    "powerflow": (1000, None),
    "powerflow-prices": (1000, None),
    "milp-energy": (400, 1024),
}
"""Policies, with the jobs and GPUs (None: as the severity says) of their round."""

REPEATS = 7


def measure(name: str, jobs: int, gpus: int | None, severity: str, repeats: int) -> dict[str, Any]:
    """Decide a round so many times and return the medians."""
    round_ = generate.round(jobs, gpus, severity, 1)
    made = policy(name)
    _decide(made, round_)
    runs = [_decide(made, round_) for _ in range(repeats)]
    medians = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    plan = made.plan(round_, deadline=Deadline(), seed=0)
    return {
        "case": name,
        "severity": severity,
        "jobs": jobs,
        "gpus": round_.cluster.gpus,
        "options": plan.record.options,
        **medians,
        "gap": plan.gap,
        "status": plan.status,
        "placed": len(plan.allocations),
    }


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line per policy; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ronda.bench.speed.powerflow")
    parser.add_argument("--cases", default=",".join(CASES), help="policies, as in powerflow")
    parser.add_argument("--jobs", type=int, help="other than the policy's usual number")
    parser.add_argument("--severity", default="balanced", choices=sorted(generate.SEVERITIES))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    given = parser.parse_args(arguments)
    names = given.cases.split(",")
    if not set(names) <= set(CASES) or given.repeats < 1 or (given.jobs or 1) < 1:
        text = f"error: --cases: expected some of {', '.join(CASES)}; numbers above 0"
        print(text, file=sys.stderr)
        return 2
    for name in names:
        jobs, gpus = CASES[name]
        if given.jobs:
            jobs, gpus = given.jobs, None
        line = measure(name, jobs, gpus, given.severity, given.repeats)
        print(json.dumps(line | {"host": host(), "versions": versions()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
