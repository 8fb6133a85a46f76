"""Carry out a comparison: every case in a process of its own, results appended as they come."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import TypeVar

import msgspec

from ronda.bench.runs.provenance import commit, host
from ronda.bench.runs.results import Result, ResultsFile, Status
from ronda.bench.runs.runner import Request
from ronda.bench.runs.specs import Case
from ronda.bench.runs.worker import RUNNER, Command, Limits, serve
from ronda.instances.files import json as files
from ronda.instances.plan import Plan
from ronda.instances.schedule import Schedule
from ronda.solvers.versions import versions

Watch = Callable[[Case, float, Result | None], None]
"""Called with a case, the share of its jobs that are complete, and its result once it ended."""

Answer = TypeVar("Answer", Schedule, Plan)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a comparison keeps its files; `answer` is what its runs make."""

    folder: Path
    answer: str = "schedule"

    @property
    def results(self) -> Path:
        """One line a run."""
        return self.folder / "results.jsonl"

    def schedule(self, key: str) -> Path:
        """Return where the schedule (or other answer) of a case is."""
        return self.folder / "runs" / key / f"{self.answer}.json.zst"

    def read(self, key: str, kind: type[Answer]) -> Answer:
        """Return the answer, of the kind that its runs make, of a case that ended well."""
        found = files.read(self.schedule(key))
        assert isinstance(found, kind)
        return found

    def log(self, key: str) -> Path:
        """Return where a run's errors are."""
        return self.folder / "runs" / key / "log.txt"


class Comparison:
    """Runs the cases of a comparison, those that have no final result yet.

    Parameters
    ----------
    folder
        For results, schedules and logs; it exists.
    limits
        For every run.
    processes
        Runs side by side.
    watch
        Told about progress, never from two threads at once.
    command
        The process of a run.
    answer
        What it makes.
    """

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        processes: int,
        *,
        watch: Watch | None = None,
        command: Command = RUNNER,
        answer: str = "schedule",
    ) -> None:
        self.layout = Layout(folder, answer)
        self.limits, self.processes, self.command = limits, processes, command
        self.file = ResultsFile(self.layout.results)
        self._watch, self._lock, self._stop = watch, Lock(), Event()

    def missing(self, cases: Iterable[Case]) -> list[Case]:
        """Return the cases that still have to run."""
        return [case for case in cases if not self._is_done(case)]

    def run(self, cases: Sequence[Case]) -> list[Result]:
        """Run what is missing and return the results of all cases, in their order.

        An interrupt kills the runs under way; the results of those that ended are kept.
        """
        with ThreadPoolExecutor(max_workers=self.processes) as pool:
            futures = [pool.submit(self._run_one, case) for case in self.missing(cases)]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                self._abandon(futures)
                raise
        found = [self.file.get(case.key) for case in cases]
        return [result for result in found if result is not None]

    def _abandon(self, futures: list[Future[None]]) -> None:
        """Stop the runs under way and do not start the others."""
        self._stop.set()
        for future in futures:
            future.cancel()

    def _is_done(self, case: Case) -> bool:
        result = self.file.get(case.key)
        if result is None or not result.final(self.limits.timeout_s, self.limits.memory_mib):
            return False
        return not result.ok or self.layout.schedule(case.key).exists()

    def _run_one(self, case: Case) -> None:
        """Run a case and append its result."""
        schedule = self.layout.schedule(case.key)
        schedule.parent.mkdir(parents=True, exist_ok=True)
        self._tell(case, 0.0, None)
        answer = serve(
            Request(case=case, schedule=str(schedule)),
            self.limits,
            self.layout.log(case.key),
            progress=lambda done, jobs: self._tell(case, done / max(jobs, 1), None),
            stop=self._stop,
            command=self.command,
        )
        own = set(Result.__struct_fields__)
        result = Result(
            key=case.key,
            instance=case.instance,
            policy=case.policy,
            seed=case.seed,
            status=answer.status,
            config=case.config,
            label=case.label,
            fingerprint=case.fingerprint,
            time_limit_s=case.time_limit_s,
            period_s=case.period_s,
            variant=case.variant,
            message=answer.message,
            timeout_s=self.limits.timeout_s,
            memory_mib=self.limits.memory_mib,
            wall_s=answer.metrics.get("wall_s", answer.wall_s),
            peak_rss_mib=answer.peak_rss_mib,
            versions=versions(),
            host=host(),
            commit=commit(),
            metrics={k: v for k, v in answer.metrics.items() if k not in own},
        )
        with self._lock:
            self.file.append(result)
        self._tell(case, 1.0, result)

    def _tell(self, case: Case, share: float, result: Result | None) -> None:
        if self._watch is not None:
            with self._lock:
                self._watch(case, share, result)


def relabel(results: Iterable[Result], cases: Iterable[Case]) -> list[Result]:
    """Give results this comparison's labels: an earlier one may have written them otherwise."""
    labels = {case.key: case.label for case in cases}
    return [msgspec.structs.replace(r, label=labels.get(r.key, r.label)) for r in results]


def failed(results: Iterable[Result]) -> list[Result]:
    """Return the runs that something is wrong with: an error, or a schedule with violations."""
    return [r for r in results if r.status is Status.ERROR or r.metrics.get("violations")]
