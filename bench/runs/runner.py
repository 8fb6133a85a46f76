"""The process of a run: ``python -m ronda.bench.runs.runner < request.json``.

The request is a `ronda.bench.runs.specs.Request` on stdin. An instance is driven to its end, a
round is decided; the schedule or plan goes to a file. On stdout comes now and then one JSON line
``{"progress": [completed, jobs]}``, and at the end ``{"metrics": {...}}`` or ``{"error": "..."}``.
The parent enforces memory and time (`ronda.bench.runs.worker`).
"""

import resource
import sys
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from ronda.bench.runs.single import drive
from ronda.bench.runs.specs import Request, RunCase
from ronda.horizon.solve import solve_valid
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.errors import RondaError, explained
from ronda.instances.files.json import fingerprint, write
from ronda.instances.files.packaged import load
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.solvers.registry import policy

REPORT_EVERY_S = 0.2
"""Progress is told no more often than this."""


def say(message: dict[str, Any]) -> None:
    """Write one line for the parent; if the parent is gone this ends the run."""
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


def reporter() -> Callable[[int, int, float], None]:
    """Return a progress callback that tells the parent now and then."""
    last_s = 0.0

    def report(completed: int, jobs: int, now_s: float) -> None:
        nonlocal last_s
        if (clock := time.perf_counter()) - last_s >= REPORT_EVERY_S:
            last_s = clock
            say({"progress": [completed, jobs]})

    return report


def execute(request: Request) -> dict[str, Any]:
    """Carry out a run, write its answer, and return its metrics."""
    case = request.case
    found = load(case.source)
    question = case.variant.apply(found) if isinstance(found, Instance) else found
    if fingerprint(question) != case.fingerprint:
        raise RondaError(f"{case.source}: it changed while the comparison ran")
    answer: Schedule | Plan
    if isinstance(question, Instance):
        answer, measured = drive(question, case, progress=reporter())
        metrics = measured.metrics
    else:
        answer, metrics = decide(question, case)
    write(answer, Path(request.answer))
    return metrics | {"peak_rss_mib": peak_rss_mib()}


def decide(round_: Round, case: RunCase) -> tuple[Plan, dict[str, Any]]:
    """Decide a round; returns the plan and the policy's own account of its search.

    The clock starts once the packages that the policy names are imported: a scheduler imports
    them once, not at each decision.
    """
    made = policy(case.policy, **case.config)
    for package in getattr(made, "packages", ()):
        import_module("pyomo.environ" if package == "pyomo" else package)
    began = time.perf_counter()
    plan = solve_valid(round_, made, seed=case.seed, deadline=Deadline(case.time_limit_s))
    wall_s = time.perf_counter() - began
    record = plan.record
    return plan, {
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
    }


def peak_rss_mib() -> float:
    """Return the most memory of this process in MiB, not what its parent held (``ru_maxrss``)."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Serve one request, on stdin; return the exit code."""
    try:
        request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
        say({"metrics": execute(request)})
    except RondaError as error:
        say({"error": str(error)})
        return error.exit_code
    except MemoryError:
        say({"error": "MemoryError", "oom": True})
        return 1
    except BrokenPipeError:
        return 1
    except Exception as error:
        # The parent keeps stderr in the run's log, and the last line in the results.
        traceback.print_exc()
        said = explained(error) if isinstance(error, ModuleNotFoundError) else None
        say({"error": str(said or f"{type(error).__name__}: {error}")})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
