"""What a deadline buys: decisions of a process that has only warmed up."""

import time
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

import ronda
from lab.speed.cases import case, timed
from ronda.instances import clock, generate


@case("2000")
def measure_deadlines(
    jobs: int,
    policy: str = "prices",
    limit_s: float = 0.05,
    gpus: int = 2048,
    severity: str = "balanced",
    seed: int = 0,
    processor: bool = False,
) -> dict[str, Any]:
    """Time one decision of a generated round, in which nobody runs yet, within a limit.

    From the round to the checked plan, the first except for that of `ronda.warm_up`. cpu_s is
    processor time, used the GPUs that jobs get, placed these jobs.
    """
    made = generate.round(jobs, gpus, severity, seed)
    states = sorted(made.jobs, key=lambda state: state.job.submit_s)
    waiting = tuple(replace(s, allocation=None, started=False) for s in states)
    round_ = replace(made, running=(), waiting=waiting)
    ronda.warm_up(policy)
    if processor:
        vars(clock)["time"] = SimpleNamespace(perf_counter=time.process_time)
    plan, total_s, cpu_s = timed(lambda: ronda.solve(round_, policy, deadline=limit_s))
    record = plan.record
    return {
        "gpus": gpus,
        "options": record.options,
        "total_s": total_s,
        "cpu_s": cpu_s,
        "build_s": record.build_s,
        "solve_s": record.solve_s,
        "extract_s": record.extract_s,
        "gap": plan.gap,
        "status": plan.status,
        "placed": len(plan.allocations),
        "used": sum(held.option.gpus for held in plan.allocations.values()),
        "message": record.message,
    }
