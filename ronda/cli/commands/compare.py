"""``ronda compare``: several policies on several instances, with seeds, side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ronda.cli.command import Taught
from ronda.cli.options import (
    figures_option,
    instances_argument,
    jobs_option,
    json_option,
    memory_option,
    out_option,
    policies_option,
    seeds_option,
    time_limit_option,
    timeout_option,
)

if TYPE_CHECKING:
    from ronda.bench.figures.table import Block
    from ronda.bench.runs.results import Result
    from ronda.bench.runs.specs import Case


@click.command(
    name="compare",
    cls=Taught,
    examples=(
        "ronda compare venus-vcvly --policies fifo,sjf,srtf",
        "ronda compare pollux-1 pollux-2 --policies 'srtf,milp(gap=1e-3),genetic' --seeds 0-4",
    ),
)
@instances_argument
@policies_option
@seeds_option
@out_option("compare-out")
@jobs_option
@time_limit_option(10.0, "For each decision.")
@timeout_option
@memory_option
@figures_option
@json_option
def command(
    sources: tuple[str, ...],
    policies: str,
    seeds: str,
    out: Path,
    jobs: int,
    time_limit: float,
    timeout: float,
    memory: float,
    figures: bool,
    as_json: bool,
) -> int:
    """Compare policies on INSTANCEs by solution quality and by solve time.

    Every run has a process of its own and adds one line to results.jsonl. Stopped or killed, the
    same command goes on. The table is printed and written to table.md.
    """
    from ronda.bench.figures.table import blocks, markdown
    from ronda.bench.runs.compare import failed
    from ronda.bench.runs.folder import claim
    from ronda.bench.runs.specs import cases, parse_seeds, split_policies
    from ronda.bench.runs.worker import Limits
    from ronda.cli.load import instance as load_instance
    from ronda.instances.files.json import fingerprint
    from ronda.instances.files.storage import store

    wanted, numbers = split_policies(policies), parse_seeds(seeds)
    instances = {source: load_instance(source) for source in dict.fromkeys(sources)}
    loaded = {source: (found, fingerprint(found)) for source, found in instances.items()}
    todo = cases(loaded, wanted, numbers, time_limit_s=time_limit)
    with claim(out, "comparison"):
        results = run_cases(todo, out, Limits(timeout, memory), jobs)
        tables = blocks(results)
        store(out / "table.md", markdown(tables).encode())
        if not as_json:
            _show(tables, results)
        if figures:
            _draw({case.instance: loaded[case.source][0] for case in todo}, results, out)
    if as_json:
        _emit(tables, results, out)
    else:
        click.echo(f"results, table and figures: {out}")
    return 1 if failed(results) else 0


def run_cases(
    cases: "Sequence[Case]", out: Path, limits: Any, jobs: int, **kind: Any
) -> "list[Result]":
    """Run what is missing, under a bar for all and one for each run under way.

    `kind` is what `ronda.bench.runs.compare.Comparison` needs to know if runs are no horizons.
    """
    from ronda.bench.runs.compare import Comparison, relabel
    from ronda.cli.errors import InterruptedRunError
    from ronda.cli.output import note
    from ronda.cli.progress import Bars

    with Bars() as bars:
        board = Board(bars)
        comparison = Comparison(out, limits, jobs, watch=board, **kind)
        missing = comparison.missing(cases)
        board.total = len(missing)
        if len(missing) < len(cases):
            note(f"{len(cases) - len(missing)} of {len(cases)} runs are in {out} already")
        try:
            results = comparison.run(cases)
        except KeyboardInterrupt:
            raise InterruptedRunError(
                f"{board.ended} of {board.total} runs ended; the same command goes on from {out}"
            ) from None
    return relabel(results, cases)


class Board:
    """Shows how far all runs are, and each of those under way."""

    def __init__(self, bars: Any) -> None:
        self.bars = bars
        self.total = self.ended = 0
        self._shares: dict[str, float] = {}

    def __call__(self, case: "Case", share: float, result: "Result | None") -> None:
        """Take in news of a run."""
        name = case.title
        if result is None:
            self._shares[name] = share
            self.bars.update(name, share)
        else:
            self.ended += 1
            self._shares.pop(name, None)
            self.bars.remove(name)
        share = (self.ended + sum(self._shares.values())) / max(self.total, 1)
        self.bars.update("all runs", share, f"{self.ended}/{self.total} runs")


def _draw(instances: dict[str, Any], results: "Sequence[Result]", out: Path) -> None:
    """Draw the figures of every instance."""
    from ronda.bench.figures.run import draw_comparison
    from ronda.bench.runs.compare import Layout
    from ronda.cli.progress import Bars

    with Bars() as bars:
        for index, (name, instance) in enumerate(instances.items()):
            bars.update("figures", index / len(instances), name)
            own = [result for result in results if result.instance == name and result.ok]
            draw_comparison(instance, own, Layout(out), out / "figures" / name)


def _emit(tables: "Sequence[Block]", results: "Sequence[Result]", out: Path) -> None:
    """Print the comparison for programs."""
    from collections import Counter

    from ronda.bench.runs.compare import Layout
    from ronda.cli.output import emit

    emit(
        {
            "out": str(out),
            "results": str(Layout(out).results),
            "runs": len(results),
            "statuses": Counter(str(result.status) for result in results),
            "instances": [
                {
                    "instance": block.instance,
                    "jobs": block.jobs,
                    "bound_mean_jct_s": block.bound_mean_jct_s,
                    "policies": [
                        {"policy": row.label, "runs": row.runs, "note": row.note, **row.means}
                        for row in block.rows
                    ],
                }
                for block in tables
            ],
        }
    )


def _show(tables: "Sequence[Block]", results: "Sequence[Result]") -> None:
    """Print the table for people, and what went wrong."""
    from rich.text import Text

    from ronda.bench.figures.table import title
    from ronda.cli.commands.comparison import block_table
    from ronda.cli.output import console, display

    width = console().width
    for block in tables:
        display(Text(title(block), style="bold"), block_table(block, width))
    note_failures(results)


def note_failures(results: "Sequence[Result]") -> None:
    """Tell on stderr which runs did not end with a schedule, and why."""
    from ronda.cli.output import note

    for result in results:
        if result.message:
            note(f"{result.status}: {result.title}: {result.message}")
