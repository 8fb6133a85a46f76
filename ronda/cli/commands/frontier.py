"""``ronda frontier``: the lowest mean JCT that each policy reaches with a given energy."""

from collections.abc import Sequence
from typing import Any

import click

from ronda.bench.frontier.curves import COMPARATORS
from ronda.bench.frontier.report import Frontier, frontiers
from ronda.bench.frontier.sweep import (
    parse_budgets,
    parse_changes,
    parse_comparators,
    sweep,
)
from ronda.bench.frontier.tables import frontier_report
from ronda.bench.runs.results import results_of
from ronda.bench.runs.single import metered
from ronda.bench.runs.specs import split_policies
from ronda.bench.suites.cells import expand
from ronda.bench.tables import keep_tables, write_tables
from ronda.cli.command import taught
from ronda.cli.options import PolicyName
from ronda.cli.output import can_draw
from ronda.cli.progress import Bars
from ronda.cli.runs import How, horizon_options
from ronda.instances.errors import InputError
from ronda.instances.instance import Knowledge
from ronda.instances.tables.table import Report


@taught(
    "frontier",
    "ronda frontier philly-energy-small --policies fifo,srtf,prices --budgets 0.5:1.0:6",
    "ronda frontier philly-energy --policies milp --budgets 0.6,0.8 --out frontier-out",
    "ronda frontier philly-energy-small --policies fifo,prices --vary idle=0.7,1.3",
)
@click.option(
    "--budgets",
    default="0.5:1.0:6",
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
@click.option(
    "--comparators",
    type=PolicyName(),
    default=",".join(sorted(COMPARATORS)),
    help="Policies that stand for others' schedulers; the rest count as ronda's own.",
)
@horizon_options("frontier-out")
def command(
    sources: tuple[str, ...],
    policies: str,
    budgets: str,
    vary: tuple[str, ...],
    comparators: str,
    levels: tuple[Knowledge, ...],
    seeds: str,
    time_limit: float,
    figures: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """Sweep the energy budget of INSTANCEs and compare policies at equal energy.

    Every run has its own process and adds one line to results.jsonl. After a stop or a kill, the
    same command resumes; other policies, budgets or variations are added to the contents of the
    folder.

    There is a run for each policy, budget and seed, with --jobs of them in parallel; progress goes
    to stderr, in a log once a minute.
    """
    factors, changes = parse_budgets(budgets), parse_changes(vary)
    against, runs = parse_comparators(comparators), How(**how)
    suite = sweep(
        factors,
        changes,
        instances=tuple(dict.fromkeys(sources)),
        policies=split_policies(policies),
        knowledge=levels,
        seeds=seeds,
        time_limit_s=time_limit,
    )
    todo = expand(suite, runs.out)
    for each, _ in todo.named.values():
        if not metered(each):
            raise InputError(each.name, "no watts of busy GPUs", "profiles with power")
    with runs.ready("frontier") as run:
        todo.keep()
        results = run(todo.cases)
        instances = {each.name: each for each, _ in todo.named.values()}
        with Bars() as bars:
            reports = frontiers(
                instances,
                results_of(runs.out).all(),
                results,
                runs.layout,
                against,
                progress=lambda name, share: bars.update(f"bound of {name}", share),
            )
        told = [frontier_report(made) for made in reports]
        drawn = [table for each in told for table in each.tables]
        write_tables(drawn, runs.out, [failure for made in reports for failure in made.failures])
        keep_tables(drawn, runs.out)
        if figures and can_draw():
            _draw(reports, runs)
    report = Report({"instances": [each.fields for each in told]}, drawn)
    return runs.tell(results, report, as_json=as_json)


def _draw(reports: Sequence[Frontier], runs: How) -> None:
    from ronda.bench.figures.draw import save_chart
    from ronda.bench.frontier.figure import frontier, prices

    for made in reports:
        name = made.instance.name
        folder, labels = runs.layout.figures(name), [curve.label for curve in made.curves]
        if made.levels:
            chart = frontier(name, made.curves, made.bound)
            save_chart(chart, folder / "frontier", svg=True)
        if made.worths:
            save_chart(prices(name, labels, made.worths), folder / "prices")
