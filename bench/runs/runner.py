"""The process of a run, which drives an instance to its end or decides a round.

It writes the schedule or plan to a file. `ronda.bench.runs.worker` starts the process and enforces
limits of memory and time.
"""

import resource
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from ronda.bench.runs.results import Status
from ronda.bench.runs.single import drive, measure
from ronda.bench.runs.specs import Request, RunCase
from ronda.bench.runs.worker import Ending
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


def execute(
    request: Request, progress: Callable[[int, int, float], None] | None = None
) -> dict[str, Any]:
    """Carry out a run, write its answer, and return its metrics."""
    case = request.case
    found = load(case.source)
    question = case.variant.apply(found) if isinstance(found, Instance) else found
    if fingerprint(question) != case.fingerprint:
        raise RondaError(f"{case.source}: it changed while the comparison ran")
    answer: Schedule | Plan
    if isinstance(question, Instance):
        if case.recorded is not None:
            answer = case.recorded.read()
            measured = measure(question, answer, wall_s=0.0, tight_s=case.tight_bound_s)
        else:
            answer, measured = drive(question, case, progress=progress)
        metrics = measured.metrics
    else:
        answer, metrics = decide(question, case)
    write(answer, Path(request.answer))
    return metrics | {"peak_rss_mib": peak_rss_mib()}


def decide(round_: Round, case: RunCase) -> tuple[Plan, dict[str, Any]]:
    """Decide a round; return the plan and the policy's own account of its search.

    The clock starts after the packages that the policy names are imported, because a scheduler
    imports them only once and not at each decision.
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
    """Return this process's peak memory in MiB; unlike ``ru_maxrss``, it excludes its parent's."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def answering(_asked: bytes, tell: Callable[[bytes], None]) -> Callable[[bytes], bytes]:
    """Return a function for the run's process that carries out requests and returns `Ending`s."""
    last_s = 0.0

    def report(completed: int, jobs: int, now_s: float) -> None:
        nonlocal last_s
        if (clock := time.perf_counter()) - last_s >= 0.2:  # seconds between two reports
            last_s = clock
            tell(msgspec.json.encode((completed, jobs)))

    def answer(asked: bytes) -> bytes:
        try:
            request = msgspec.json.decode(asked, type=Request)
            ending = Ending(Status.OK, metrics=execute(request, report))
        except RondaError as error:
            ending = Ending(message=str(error))
        except MemoryError:
            ending = Ending(Status.OOM, "MemoryError")
        except Exception as error:
            traceback.print_exc()  # into the run's log; the last line goes into the results
            said = explained(error) if isinstance(error, ModuleNotFoundError) else None
            ending = Ending(message=str(said or f"{type(error).__name__}: {error}"))
        return msgspec.json.encode(ending)

    return answer
