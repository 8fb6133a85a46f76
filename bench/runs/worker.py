"""A run in its own process, which is killed when it exceeds its limits of time and memory."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ronda.bench.runs.provenance import commit, host
from ronda.bench.runs.results import Result, Status
from ronda.bench.runs.specs import Request, RunCase, Spec
from ronda.instances.clock import Deadline
from ronda.instances.errors import RondaError
from ronda.solvers.process.host import (
    LateAnswerError,
    MemoryHeldError,
    Process,
    ProcessDiedError,
    StartingError,
)
from ronda.solvers.versions import versions

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
ONE_THREAD = dict.fromkeys(_THREADS, "1")
"""Numerical libraries get one thread, so that parallel runs do not compete for cores."""

Stop = Callable[[], bool]
"""A function that returns whether to stop now."""


class StoppedError(RondaError):
    """An error for a run that was ended from outside before it finished."""

    exit_code = 130


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of a run: wall-clock seconds and resident memory in MiB; None means no limit."""

    timeout_s: float | None = None
    memory_mib: float | None = None


@dataclass(slots=True)
class Ending:
    """The end of a run: its status, message, metrics, time and memory."""

    status: Status = Status.ERROR
    message: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)
    wall_s: float = 0.0
    peak_rss_mib: float = 0.0


def carry_out(
    case: RunCase,
    answer: Path,
    limits: RunLimits,
    log: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    stop: Stop | None = None,
) -> Result:
    """Run a case in its own process and return its line of the results; see `serve`."""
    answer.parent.mkdir(parents=True, exist_ok=True)
    request = Request(case=case, answer=str(answer))
    said = serve(request, limits, log, progress=progress, stop=stop)
    return result_of(case, limits, said)


def result_of(case: RunCase, limits: RunLimits, said: Ending) -> Result:
    """Return the line of the results for a case that has just ended on this machine."""
    own = set(Result.__struct_fields__)
    return Result(
        **{name: getattr(case, name) for name in Spec.__struct_fields__},
        key=case.key,
        status=said.status,
        message=said.message,
        timeout_s=limits.timeout_s,
        memory_mib=limits.memory_mib,
        wall_s=said.metrics.get("wall_s", said.wall_s),
        peak_rss_mib=said.peak_rss_mib,
        versions=versions(),
        host=host(),
        commit=commit(),
        metrics={k: v for k, v in said.metrics.items() if k not in own},
    )


def serve(
    request: Request,
    limits: RunLimits,
    log: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
    stop: Stop | None = None,
    runner: str = "ronda.bench.runs.runner:answering",
) -> Ending:
    """Run a request in its own process; above its limits, kill the process and all its children.

    `log` gets the run's output; an empty log is removed. `progress` is called with (completed jobs,
    jobs) as the run reports them. If `stop` returns True, the run is killed and StoppedError is
    raised. `runner` makes the function that carries out requests (`Process`).
    """

    def told(data: bytes) -> None:
        if progress is not None:
            progress(*msgspec.json.decode(data))

    def between() -> None:
        if stop is not None and stop():
            raise StoppedError("stopped")

    ending, deadline = Ending(), Deadline(limits.timeout_s)
    most_mib = math.inf if limits.memory_mib is None else limits.memory_mib
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = Process(
            runner,
            told=told,
            between=between,
            memory_mib=most_mib,
            output=output,
            environment=ONE_THREAD,
        )
        try:
            process.ready(deadline)
            left_s = None if limits.timeout_s is None else max(deadline.left(), 1e-3)
            answer = process.ask(msgspec.json.encode(request), left_s)
            ending = msgspec.json.decode(answer, type=Ending)
        except (StartingError, LateAnswerError):
            ending.status = Status.TIME
            ending.message = f"still running after {limits.timeout_s:g} s"
        except MemoryHeldError as error:
            ending.status, ending.message = Status.OOM, str(error)
        except ProcessDiedError as error:
            ending.message = str(error)
        finally:
            process.kill()
    if log.stat().st_size == 0:
        log.unlink()
    ending.wall_s = deadline.elapsed()
    ending.peak_rss_mib = ending.metrics.pop("peak_rss_mib", process.peak_rss_mib)
    if ending.status is Status.OK and ending.peak_rss_mib > most_mib:
        ending.status, ending.metrics = Status.OOM, {}
        ending.message = f"it held {ending.peak_rss_mib:.0f} MiB, more than {most_mib:g} MiB"
    return ending
