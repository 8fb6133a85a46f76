"""Shared options, progress bars and reports of commands with many runs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ronda.bench.runs.compare import Comparison, Layout, failed
from ronda.bench.runs.folder import claim
from ronda.bench.runs.results import Result, write_runs
from ronda.bench.runs.specs import RunCase
from ronda.bench.runs.worker import RunLimits
from ronda.cli.options import (
    Command,
    dask_option,
    figures_option,
    instances_argument,
    jobs_option,
    json_option,
    levels_option,
    memory_option,
    out_option,
    parquet_option,
    policies_option,
    seeds_option,
    stacked,
    time_limit_option,
    timeout_option,
)
from ronda.cli.output import note, show
from ronda.cli.progress import Bars
from ronda.instances.errors import InterruptedRunError
from ronda.instances.tables.table import Report

if TYPE_CHECKING:
    from dask.distributed import Client


def horizon_options(out: str) -> Callable[[Command], Command]:
    """Return the arguments and options of commands that compare policies on whole instances."""
    return stacked(
        instances_argument,
        policies_option("fifo,srtf,milp,genetic"),
        levels_option,
        seeds_option,
        out_option(out),
        jobs_option(),
        dask_option,
        time_limit_option(10.0, "For each decision."),
        timeout_option,
        memory_option,
        figures_option,
        parquet_option,
        json_option,
    )


@dataclass(frozen=True)
class How:
    """The options of commands that make many runs: folder, workers and limits."""

    out: Path
    jobs: int
    memory: float
    timeout: float
    dask: str | None = None
    parquet: bool = False
    answer: str = "schedule"

    @property
    def layout(self) -> Layout:
        """The places of the runs' files."""
        return Layout(self.out, self.answer)

    @contextmanager
    def ready(
        self, kind: str, about: dict[str, Any] | None = None
    ) -> Iterator[Callable[[Sequence[RunCase]], list[Result]]]:
        """Connect to the cluster, if any, and hold the folder; yield the function that runs cases.

        `kind` and `about` are passed to `ronda.bench.runs.folder.claim`.
        """
        with ExitStack() as stack:
            client = None
            if self.dask is not None:
                from ronda.bench.runs.on_dask import LOCAL, connect

                client = stack.enter_context(connect(self.dask.strip() or LOCAL, self.jobs))
            stack.enter_context(claim(self.out, kind, about))
            yield lambda cases: self._run(cases, client)

    def _run(self, cases: Sequence[RunCase], client: "Client | None") -> list[Result]:
        shares: dict[str, float] = {}
        ended = total = 0

        def watch(case: RunCase, share: float, result: Result | None) -> None:
            nonlocal ended
            if result is None:
                shares[case.title] = share
                bars.update(case.title, share)
            else:
                ended += 1
                shares.pop(case.title, None)
                bars.remove(case.title)
            share = (ended + sum(shares.values())) / max(total, 1)
            bars.update("all runs", share, f"{ended}/{total} runs")

        with Bars() as bars:
            comparison = Comparison(
                self.out,
                RunLimits(self.timeout, self.memory),
                self.jobs,
                watch=watch,
                answer=self.answer,
                client=client,
            )
            total = len(comparison.missing(cases))
            if total < len(cases):
                note(f"{len(cases) - total} of {len(cases)} runs are in {self.out} already")
            try:
                found = comparison.run(cases)
            except KeyboardInterrupt:
                raise InterruptedRunError(
                    f"interrupted; {ended} of {total} runs ended; "
                    f"the same command goes on from {self.out}"
                ) from None
        write_runs(found, self.out, parquet=self.parquet)
        return found

    def tell(self, results: Sequence[Result], report: Report, *, as_json: bool) -> int:
        """Print the report of runs and their failures; return the exit code."""
        counts = Counter(str(result.status) for result in results)
        fields = {
            "out": str(self.out),
            "results": str(self.layout.results),
            "runs": len(results),
            "statuses": counts,
            **report.fields,
        }
        what = "results, plans" if self.answer == "plan" else "results"
        return show(
            Report(
                fields,
                [*report.parts, f"{what}, table and figures: {self.out}"],
                notes=() if as_json else [*failures(results)],
                code=1 if failed(results) else 0,
            ),
            as_json=as_json,
        )


def failures(results: Iterable[Result]) -> Iterator[str]:
    """Yield the title and fault of each run that failed or broke rules."""
    for result in results:
        if result.message:
            yield f"{result.status}: {result.title}: {result.message}"
        elif result.metrics.get("violations"):
            told = f"it breaks {result.metrics['violations']} rules"
            yield f"{result.title}: {result.metrics.get('wrong', told)}"
