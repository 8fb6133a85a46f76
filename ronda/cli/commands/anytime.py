"""``ronda anytime``: how good plans are after how long, policy by policy, on the same rounds."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ronda.cli.command import Taught
from ronda.cli.options import (
    PolicyName,
    Source,
    json_option,
    memory_option,
    time_limit_option,
)

if TYPE_CHECKING:
    from ronda.bench.anytime.table import Line
    from ronda.bench.anytime.traces import Trace
    from ronda.bench.runs.results import Result


@click.command(
    name="anytime",
    cls=Taught,
    examples=(
        "ronda anytime round.json --policies evolve,milp,prices",
        "ronda anytime *.json --policies 'evolve(population=32),prices' --seeds 0-9 --out curves",
    ),
)
@click.argument("sources", metavar="ROUND...", type=Source(), nargs=-1, required=True)
@click.option(
    "--policies",
    type=PolicyName(),
    default="ones,evolve,milp,prices",
    show_default=True,
    help="Separated by commas; parameters in brackets.",
)
@click.option(
    "--objective",
    default="rank",
    show_default=True,
    help="What all plans are valued by, and what policies that can choose aim at.",
)
@click.option(
    "--seeds",
    default="0",
    show_default=True,
    metavar="LIST",
    help="As in 0-4 or 0,3,5. A policy without randomness runs once a round.",
)
@time_limit_option(10.0, "For each decision; the primal integral goes up to it.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("anytime-out"),
    show_default=True,
    metavar="FOLDER",
    help="For results, plans, table and figures; what is there already is not run again.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Runs side by side: more than one disturb each other's times.",
)
@memory_option
@json_option
def command(
    sources: tuple[str, ...],
    policies: str,
    objective: str,
    seeds: str,
    time_limit: float,
    out: Path,
    jobs: int,
    memory: float,
    as_json: bool,
) -> int:
    """Draw solution quality against time and against evaluations on ROUNDs.

    Every run has a process of its own and adds one line to results.jsonl. All plans are valued by
    one objective, against the best bound that any policy proves. The table is printed and written
    to table.md; figures with their numbers are in the folder.
    """
    from ronda.bench.anytime import traces as anytime
    from ronda.bench.anytime.table import lines, markdown
    from ronda.bench.runs.compare import Layout, failed
    from ronda.bench.runs.folder import claim
    from ronda.bench.runs.specs import parse_seeds, split_policies
    from ronda.bench.runs.worker import Limits
    from ronda.cli.commands.compare import run_cases
    from ronda.cli.load import round_ as load_round
    from ronda.formulations.objectives.forms import minds_power
    from ronda.instances.files.storage import store

    minds_power(objective)  # refuses what it does not know
    wanted, numbers = split_policies(policies), parse_seeds(seeds)
    rounds = {source: load_round(source) for source in dict.fromkeys(sources)}
    todo = anytime.cases(rounds, wanted, numbers, objective=objective, time_limit_s=time_limit)
    named = {each.name: each for each in rounds.values()}
    with claim(out, "anytime", {"objective": objective}):
        results = run_cases(
            todo,
            out,
            Limits(60.0 + 3 * time_limit, memory),
            jobs,
            command=(sys.executable, "-m", anytime.COMMAND),
            answer=anytime.ANSWER,
        )
        found = anytime.traces(results, named, Layout(out, anytime.ANSWER), objective)
        made = lines(found, results, time_limit) if found else []
        store(out / "table.md", markdown(made, time_limit).encode())
        _draw(found, out, time_limit)
    if as_json:
        _emit(made, found, results, out, time_limit)
    else:
        _show(made, results, time_limit)
        click.echo(f"results, plans, table and figures: {out}")
    return 1 if failed(results) else 0


def _draw(found: "Sequence[Trace]", out: Path, limit_s: float) -> None:
    """Draw a figure for each round, and one of their mean."""
    from ronda.bench.anytime.figure import draw
    from ronda.bench.anytime.traces import references

    reference = references(found)
    for name in reference:
        own = [trace for trace in found if trace.round == name]
        draw(own, reference, limit_s, out / "figures" / name)
    if len(reference) > 1:
        draw(found, reference, limit_s, out / "figures" / "all rounds")


def _emit(
    made: "Sequence[Line]",
    found: "Sequence[Trace]",
    results: "Sequence[Result]",
    out: Path,
    limit_s: float,
) -> None:
    """Print everything for programs."""
    from collections import Counter
    from dataclasses import asdict

    from ronda.bench.anytime.table import times
    from ronda.bench.anytime.traces import references
    from ronda.cli.output import emit

    emit(
        {
            "out": str(out),
            "runs": len(results),
            "statuses": Counter(str(result.status) for result in results),
            "references": references(found),
            "times_s": times(limit_s),
            "policies": [asdict(line) for line in made],
        }
    )


def _show(made: "Sequence[Line]", results: "Sequence[Result]", limit_s: float) -> None:
    """Print the table for people, and what went wrong."""
    from ronda.bench.anytime.table import cells, header
    from ronda.cli.output import display, note, table

    shown: Any = table(*header(limit_s))
    for line in made:
        shown.add_row(*cells(line))
    display(shown)
    for result in results:
        if result.message:
            note(f"{result.status}: {result.title}: {result.message}")
        elif result.metrics.get("violations"):
            note(f"{result.title}: its plan breaks a rule and does not count")
