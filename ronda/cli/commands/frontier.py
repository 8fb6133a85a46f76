"""``ronda frontier``: how low a mean JCT each policy reaches with how much energy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    from ronda.bench.frontier.report import Report
    from ronda.bench.runs.results import Result
    from ronda.instances.instance import Instance


@click.command(
    name="frontier",
    cls=Taught,
    examples=(
        "ronda frontier philly-energy-small --policies fifo,srtf,prices --budgets 0.5:1.0:6",
        "ronda frontier philly-energy --policies milp --budgets 0.6,0.8 --out frontier-out",
        "ronda frontier philly-energy-small --policies fifo,prices --vary idle=0.7,1.3",
    ),
)
@instances_argument
@policies_option
@click.option(
    "--budgets",
    default="0.5:1.0:6",
    show_default=True,
    metavar="FACTORS",
    help="From:to:how many, or a list, of an instance's own energy budget; of the draw with all "
    "GPUs busy at full clock where it has none.",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="NAME=NUMBERS",
    help="Run all of it again with other idle power (idle=0.7,1.3), power curves (power=0.9,1.1) "
    "or more nodes (nodes=1) and rank the policies; again for more.",
)
@seeds_option
@out_option("frontier-out")
@jobs_option
@time_limit_option(10.0, "For each decision.")
@timeout_option
@memory_option
@figures_option
@json_option
def command(
    sources: tuple[str, ...],
    policies: str,
    budgets: str,
    vary: tuple[str, ...],
    seeds: str,
    out: Path,
    jobs: int,
    time_limit: float,
    timeout: float,
    memory: float,
    figures: bool,
    as_json: bool,
) -> int:
    """Sweep the energy budget of INSTANCEs and compare policies at equal energy.

    Every run has a process of its own and adds one line to results.jsonl. Stopped or killed, the
    same command goes on; other policies, budgets or variations are added to what is in the folder.
    """
    from ronda.bench.frontier.sweep import parse_budgets, parse_changes, sweep_cases
    from ronda.bench.frontier.tables import markdown
    from ronda.bench.runs.compare import failed
    from ronda.bench.runs.folder import claim
    from ronda.bench.runs.specs import parse_seeds, split_policies
    from ronda.bench.runs.worker import Limits
    from ronda.cli.commands.compare import run_cases
    from ronda.cli.load import instance as load_instance
    from ronda.instances.files.storage import store

    wanted, numbers = split_policies(policies), parse_seeds(seeds)
    factors, changes = parse_budgets(budgets), parse_changes(vary)
    instances = {source: load_instance(source) for source in dict.fromkeys(sources)}
    todo = sweep_cases(instances, wanted, numbers, factors, changes, time_limit_s=time_limit)
    with claim(out, "frontier"):
        results = run_cases(todo, out, Limits(timeout, memory), jobs)
        reports = _reports(instances, results, out)
        store(out / "table.md", markdown(reports).encode())
        if figures:
            _draw(reports, out)
    if as_json:
        _emit(reports, results, out)
    else:
        _show(reports, results)
        click.echo(f"results, table and figures: {out}")
    return 1 if failed(results) else 0


def _reports(
    instances: "Mapping[str, Instance]", asked: "Sequence[Result]", out: Path
) -> "list[Report]":
    """Make the report of every instance from the results asked for and those there before."""
    from ronda.bench.frontier.bound import kept_steps
    from ronda.bench.frontier.report import report
    from ronda.bench.frontier.sweep import belonging
    from ronda.bench.runs.compare import Layout
    from ronda.bench.runs.results import ResultsFile
    from ronda.bench.runs.variant import Variant, reference_w
    from ronda.cli.progress import Bars

    layout, made = Layout(out), []
    there = ResultsFile(layout.results).all()
    with Bars() as bars:
        for name, instance in {each.name: each for each in instances.values()}.items():
            own = belonging(instance, there, asked)
            most_w = max((result.variant.sustained_w or 0.0 for result in own), default=0.0)
            bound = kept_steps(
                Variant(sustained_w=most_w).apply(instance),
                out / "bounds.json",
                lambda share, name=name: bars.update(f"bound of {name}", share),  # type: ignore[misc]
            )
            made.append(report(instance, reference_w(instance), own, layout, bound))
    return made


def _draw(reports: "Sequence[Report]", out: Path) -> None:
    """Draw the figures of every instance."""
    from ronda.bench.frontier.figure import draw_frontier, draw_prices

    for made in reports:
        folder = out / "figures" / made.instance.name
        draw_frontier(made, folder / "frontier")
        draw_prices(made, folder / "prices")


def _emit(reports: "Sequence[Report]", results: "Sequence[Result]", out: Path) -> None:
    """Print the reports for programs."""
    from collections import Counter

    from ronda.bench.frontier.tables import as_json
    from ronda.bench.runs.compare import Layout
    from ronda.cli.output import emit

    emit(
        {
            "out": str(out),
            "results": str(Layout(out).results),
            "runs": len(results),
            "statuses": Counter(str(result.status) for result in results),
            "instances": [as_json(made) for made in reports],
        }
    )


def _show(reports: "Sequence[Report]", results: "Sequence[Result]") -> None:
    """Print the tables for people, and what went wrong."""
    from rich.text import Text

    from ronda.bench.frontier.tables import sheets
    from ronda.cli.commands.compare import note_failures
    from ronda.cli.output import display, table

    for made in reports:
        for sheet in sheets(made):
            drawn = table(*sheet.header)
            for row in sheet.rows:
                drawn.add_row(*row)
            notes = [Text(f"  {note}", style="dim") for note in sheet.notes]
            display(Text(sheet.title, style="bold"), drawn, *notes, Text(""))
    note_failures(results)
