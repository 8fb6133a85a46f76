"""One run in a process of its own: ``python -m ronda.bench.runs.runner < request.json``.

The request is a `Request` on stdin. On stdout comes one JSON line after every so many rounds,
``{"progress": [completed, jobs]}``, and at the end ``{"metrics": {...}}`` or ``{"error": "..."}``.
The parent enforces memory and time (`ronda.bench.runs.worker`).
"""

import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ronda.bench.runs.specs import Case
from ronda.instances.base import Record
from ronda.instances.errors import RondaError

REPORT_EVERY_S = 0.2
"""Progress is told no more often than this."""


class Request(Record, frozen=True, kw_only=True):
    """What to run, and the file that gets the schedule."""

    case: Case
    schedule: str


def say(message: dict[str, Any]) -> None:
    """Write one line for the parent; if the parent is gone this ends the run."""
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


class Reporter:
    """A progress callback that tells the parent now and then."""

    def __init__(self) -> None:
        self._last_s = 0.0

    def __call__(self, completed: int, jobs: int, now_s: float) -> None:
        """Tell how many jobs are complete, if it is time to."""
        clock = time.perf_counter()
        if clock - self._last_s >= REPORT_EVERY_S:
            self._last_s = clock
            say({"progress": [completed, jobs]})


def execute(request: Request) -> dict[str, Any]:
    """Carry out a run, write its schedule, and return its metrics."""
    from ronda.bench.runs.measure import measure
    from ronda.instances.files.catalogue import load
    from ronda.instances.files.json import fingerprint, write
    from ronda.instances.instance import Instance
    from ronda.solvers.horizon.driver import run
    from ronda.solvers.registry import policy

    case = request.case
    loaded = load(case.source)
    instance = case.variant.apply(loaded) if isinstance(loaded, Instance) else None
    if instance is None or fingerprint(instance) != case.fingerprint:
        raise RondaError(f"{case.source}: the instance changed while the comparison ran")
    began = time.perf_counter()
    schedule = run(
        instance,
        policy(case.policy, **case.config),
        seed=case.seed,
        time_limit_s=case.time_limit_s,
        cadence=case.cadence(instance),
        progress=Reporter(),
    )
    wall_s = time.perf_counter() - began
    write(schedule, Path(request.schedule))
    metrics = measure(instance, schedule, wall_s=wall_s).metrics
    return metrics | {"peak_rss_mib": peak_rss_mib()}


def peak_rss_mib() -> float:
    """Return the most memory that this process has held, in MiB.

    Linux counts what the parent held into ``ru_maxrss``; its VmHWM is the process's own.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(execute: Callable[[Request], dict[str, Any]] = execute) -> int:
    """Serve one request, on stdin, by `execute`; return the exit code."""
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
        say({"error": f"{type(error).__name__}: {error}"})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
