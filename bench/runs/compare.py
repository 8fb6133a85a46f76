"""The execution of a comparison: each case has its own process; results are appended at once."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore, Event, Lock
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ronda.bench.runs.results import RESULTS, Result, Status, results_of
from ronda.bench.runs.specs import RunCase
from ronda.bench.runs.worker import RunLimits, carry_out
from ronda.instances.errors import InputError
from ronda.instances.files import json as files
from ronda.instances.files.storage import file_name, label
from ronda.instances.plan import Plan
from ronda.instances.schedule import Schedule

if TYPE_CHECKING:
    from dask.distributed import Client

Watch = Callable[[RunCase, float, Result | None], None]
"""A callback that gets a case, the share of its jobs that are complete, and its final result."""

Answer = TypeVar("Answer", Schedule, Plan)


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of a comparison's files; `answer` names the output of its runs."""

    folder: Path
    answer: str = "schedule"

    @property
    def results(self) -> Path:
        """The file of results, with one line per run."""
        return self.folder / RESULTS

    def schedule(self, key: str) -> Path:
        """Return the path of a case's schedule (or plan)."""
        return self._run(key) / f"{self.answer}.json.zst"

    def read(self, key: str, kind: type[Answer]) -> Answer:
        """Return the answer of a case that ended well; refuse an answer of another `kind`."""
        found = files.read(self.schedule(key))
        if not isinstance(found, kind):
            place, was = label(self.schedule(key)), type(found).__name__.lower()
            raise InputError(place, f"a {was}", f"the {self.answer} of its run")
        return found

    def log(self, key: str) -> Path:
        """Return the path of a run's errors."""
        return self._run(key) / "log.txt"

    def figures(self, name: str) -> Path:
        """Return the folder, or the stem, for the figures of an instance or a round."""
        return self.folder / "figures" / file_name(name)

    def _run(self, key: str) -> Path:
        return self.folder / "runs" / key


class Comparison:
    """The execution of the cases of a comparison that have no final result yet.

    `folder` exists. `processes` runs proceed in parallel, or as many as the Dask cluster behind
    `client` has threads. `watch` is never called from two threads at the same time. The `answer` of
    a run is a ``schedule``, or a ``plan`` if the cases are rounds.
    """

    def __init__(
        self,
        folder: Path,
        limits: RunLimits,
        processes: int,
        *,
        watch: Watch | None = None,
        answer: str = "schedule",
        client: "Client | None" = None,
    ) -> None:
        self.layout = Layout(folder, answer)
        self.limits, self.processes, self._client = limits, processes, client
        self._here = BoundedSemaphore(processes)
        self.file = results_of(folder)
        self._watch, self._lock, self._stop = watch, Lock(), Event()

    def missing(self, cases: Iterable[RunCase]) -> list[RunCase]:
        """Return the cases that still have to run."""
        return [case for case in cases if not self._is_done(case)]

    def run(self, cases: Sequence[RunCase]) -> list[Result]:
        """Run the missing cases and return the results of all cases, in the given order.

        An interrupt kills the current runs; the results of finished runs are kept.
        """
        side_by_side = self.processes
        if self._client is not None:  # one more run waits for each thread of the cluster
            side_by_side = max(1, 2 * sum(self._client.nthreads().values()))
        with ThreadPoolExecutor(side_by_side) as pool:
            futures = [pool.submit(self._run_one, case) for case in self.missing(cases)]
            try:
                waiting = set(futures)
                while waiting:  # a signal that another thread gets does not end a wait: poll
                    ended, waiting = wait(waiting, 0.2, FIRST_COMPLETED)
                    for future in ended:
                        future.result()
            except BaseException:
                self._stop.set()
                for future in futures:
                    future.cancel()
                raise
        labels = {case.key: case.label for case in cases}
        found = [(case, self.file.get(case.key)) for case in cases]
        # An earlier comparison may have written a policy in another form.
        return [msgspec.structs.replace(r, label=labels[c.key]) for c, r in found if r is not None]

    def _is_done(self, case: RunCase) -> bool:
        result = self.file.get(case.key)
        if result is None or not result.final(self.limits.timeout_s, self.limits.memory_mib):
            return False
        return not result.ok or self.layout.schedule(case.key).exists()

    def _run_one(self, case: RunCase) -> None:
        answer, log = self.layout.schedule(case.key), self.layout.log(case.key)
        stop = self._stop.is_set
        found: Result | str = ""
        if self._client is not None:
            from ronda.bench.runs.on_dask import carry_out_on

            found = carry_out_on(self._client, case, answer, self.limits, log, stop)
        if isinstance(found, str):
            with self._here:
                self._tell(case, 0.0, None)
                result = carry_out(
                    case,
                    answer,
                    self.limits,
                    log,
                    progress=lambda done, jobs: self._tell(case, done / max(jobs, 1), None),
                    stop=stop,
                )
            if found:
                words = filter(None, (result.message, f"carried out here: {found}"))
                result = msgspec.structs.replace(result, message="; ".join(words))
        else:
            result = found
        with self._lock:
            self.file.append(result)
        self._tell(case, 1.0, result)

    def _tell(self, case: RunCase, share: float, result: Result | None) -> None:
        if self._watch is not None:
            with self._lock:
                self._watch(case, share, result)


def failed(results: Iterable[Result]) -> list[Result]:
    """Return the runs with an error or with violations in their schedule."""
    return [r for r in results if r.status is Status.ERROR or r.metrics.get("violations")]
