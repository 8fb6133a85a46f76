"""The parent's side of a run: start the process, watch its memory and time, read its answer."""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import psutil

from ronda.bench.runs.provenance import commit, host
from ronda.bench.runs.results import Result, Status
from ronda.bench.runs.specs import Request, RunCase, Spec
from ronda.instances.errors import RondaError
from ronda.solvers.versions import versions

POLL_S = 0.2
"""Seconds between two looks at a process's memory and time."""

GRACE_S = 5.0
"""Seconds that a process may take to end after it has given its answer."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
ONE_THREAD = dict.fromkeys(_THREADS, "1")
"""Runs side by side must not fight for cores through their numerical libraries' threads."""

Command = tuple[str, ...]
RUNNER: Command = (sys.executable, "-m", "ronda.bench.runs.runner")


Stop = Callable[[], bool]
"""Tells whether to stop now."""


class StoppedError(RondaError):
    """The run was ended from outside before it was over."""

    exit_code = 130


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What a run may use: wall-clock seconds and resident memory in MiB; None: no limit."""

    timeout_s: float | None = None
    memory_mib: float | None = None


@dataclass(slots=True)
class Ending:
    """How a process ended, and what it said."""

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
    """Run a case in a process of its own and return its line of the results; see `serve`."""
    answer.parent.mkdir(parents=True, exist_ok=True)
    request = Request(case=case, answer=str(answer))
    said = serve(request, limits, log, progress=progress, stop=stop)
    return result_of(case, limits, said)


def result_of(case: RunCase, limits: RunLimits, said: Ending) -> Result:
    """Return the line of the results of a case that ended, here and now."""
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
    command: Command = RUNNER,
) -> Ending:
    """Run a request in a process of its own; over its limits all that it started is killed.

    `log` gets what the run writes on stderr; it is removed if that is nothing. `progress` is
    called with (completed jobs, jobs) as the run tells them. Once `stop` says so, the run is
    killed and StoppedError raised. `command` reads the request on stdin.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | ONE_THREAD,
            start_new_session=True,  # so that a kill reaches all of it
        )
        watch = _Watch(process, limits, progress, stop)
        try:
            answer = watch.until_end(request)
        finally:
            _end(process, watch.said)
    if log.stat().st_size == 0:
        log.unlink()
    return answer


@dataclass
class _Watch:
    """Reads what a process says while looking after its limits."""

    process: subprocess.Popen[bytes]
    limits: RunLimits
    progress: Callable[[int, int], None] | None
    stop: Stop | None
    answer: Ending = field(default_factory=Ending)
    said: bool = False

    def __post_init__(self) -> None:
        self.began = self.look_again = time.perf_counter()

    def until_end(self, request: Request) -> Ending:
        """Hand over the request and wait for the end of the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        answer = self.answer
        try:
            self.process.stdin.write(msgspec.json.encode(request))
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it died immediately; its exit code says the rest
        if self._listen(self.process.stdout.fileno()) and not self.said:
            answer.message = _last_words(self.process.wait())
        answer.wall_s = time.perf_counter() - self.began
        answer.peak_rss_mib = answer.metrics.pop("peak_rss_mib", answer.peak_rss_mib)
        self._hold_to_memory()
        return answer

    def _listen(self, pipe: int) -> bool:
        """Read lines until the process closes its output; False if it broke a limit."""
        rest = b""
        with selectors.DefaultSelector() as ready:
            ready.register(pipe, selectors.EVENT_READ)
            while not self._over():
                if not ready.select(POLL_S):
                    continue
                data = os.read(pipe, 1 << 16)
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._hear(msgspec.json.decode(line, type=dict[str, Any]))
                if self.said or not data:
                    return True
        return False

    def _hear(self, message: dict[str, Any]) -> None:
        if "progress" in message:
            if self.progress is not None:
                self.progress(*message["progress"])
            return
        self.said = True
        if "metrics" in message:
            self.answer.status, self.answer.metrics = Status.OK, message["metrics"]
        else:
            self.answer.status = Status.OOM if message.get("oom") else Status.ERROR
            self.answer.message = message["error"]

    def _hold_to_memory(self) -> None:
        answer, limit = self.answer, self.limits.memory_mib
        if answer.status is Status.OK and limit is not None and answer.peak_rss_mib > limit:
            answer.status, answer.metrics = Status.OOM, {}
            answer.message = f"it held {answer.peak_rss_mib:.0f} MiB, more than {limit:g} MiB"

    def _over(self) -> bool:
        if self.stop is not None and self.stop():
            raise StoppedError("stopped")
        clock = time.perf_counter()
        if clock < self.look_again:
            return False
        self.look_again = clock + POLL_S
        limits, answer = self.limits, self.answer
        rss_mib = _rss_mib(self.process.pid)
        answer.peak_rss_mib = max(answer.peak_rss_mib, rss_mib)
        if limits.memory_mib is not None and rss_mib > limits.memory_mib:
            answer.status = Status.OOM
            answer.message = f"it held {rss_mib:.0f} MiB, more than {limits.memory_mib:g} MiB"
            return True
        if limits.timeout_s is not None and clock - self.began > limits.timeout_s:
            answer.status = Status.TIME
            answer.message = f"still running after {limits.timeout_s:g} s"
            return True
        return False


def _rss_mib(pid: int) -> float:
    """Return the resident memory of a process and its descendants in MiB; 0 once it is gone."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    total = 0
    for member in family:
        try:
            total += member.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 2**20


def _end(process: subprocess.Popen[bytes], answered: bool) -> None:
    """End a process and all that it started; one that has answered may leave by itself."""
    try:
        process.wait(GRACE_S if answered else 0)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _last_words(code: int) -> str:
    if code == -signal.SIGKILL:
        return "killed from outside (by the system for want of memory?)"
    if code < 0:
        return f"ended by signal {signal.Signals(-code).name}"
    return f"ended with exit code {code} and no answer"
