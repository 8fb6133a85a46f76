"""``ronda sleep``: decisions about sleeping nodes on a demand series."""

from pathlib import Path

import click

from ronda.cli.command import forced, taught
from ronda.cli.options import FOLDER, Source, output_options
from ronda.cli.records import options_of, taken
from ronda.instances.errors import InputError
from ronda.instances.models.power import NodeDraw


@taught(
    "sleep",
    "ronda sleep earth-2020-09 --policy ces",
    "ronda sleep earth-2020-09 --policy 'lot-sizing(history=earth-2020-05)' --out sleep-out",
    "ronda sleep earth-2020-09 --policy ces --policy vanilla --policy 'oracle(lead=1)'",
    "ronda sleep mine.json --policy 'ces(cluster=venus,forecast=boosted)' --wake-s 600 --json",
)
@click.argument("source", metavar="SERIES", type=Source())
@click.option(
    "--policy",
    "policies",
    multiple=True,
    default=("ces",),
    metavar="POLICY",
    help="Who decides: ces, vanilla, lot-sizing or oracle, with parameters in brackets. Repeat for "
    "more.",
)
@options_of(NodeDraw)
@click.option(
    "--out", type=FOLDER, metavar="FOLDER", help="For the table and pictures with their numbers."
)
@output_options
def command(
    source: str,
    policies: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    **draw: float,
) -> None:
    """Decide which nodes of SERIES sleep, step by step, and report the outcome.

    SERIES gives the number of nodes that jobs need over time: a packaged series (earth-2020-09) or
    a file. The policies are

    \b
    ces         Helios's controller. cluster=venus|earth|saturn|uranus|philly: the
                origin of its parameters; forecast=published (with the series; it
                has seen the future), leaking, boosted, seasonal or last
    vanilla     a node sleeps as soon as it is not needed
    lot-sizing  plans on causal forecasts. price: cost of a wake-up, in nodes awake
                for a step; eps, lead: for `lead` steps nothing is missing with
                probability 1 - eps; keep: steps in which sleep must pay off;
                hours: how far it plans; forecast=boosted, seasonal or last;
                history: an earlier series to learn from
    oracle      the bound: it KNOWS THE FUTURE. price; lead: steps by which nodes
                wake early

    The needed nodes are those of the trace, whatever sleeps: waiting jobs are counted, but not
    moved. The draw of nodes is assumed; set the values of yours. A month takes about a second with
    ces and vanilla, and ten with lot-sizing.
    """  # noqa: D301 (click reads the \b)
    from ronda.bench.sleeping.lines import line_of, sleep_report
    from ronda.bench.tables import write_tables
    from ronda.cli.load import demand
    from ronda.cli.output import can_draw, show
    from ronda.cli.progress import waiting
    from ronda.instances.files.storage import label
    from ronda.systems.helios.controllers import controller

    if out is not None and out.exists() and not out.is_dir():
        raise InputError(label(out), "a file", "a folder, or a new name")
    if out is not None and (out / "table.md").exists() and not forced():
        raise InputError(label(out), "results of before", "a new folder, or --force")
    series, node = demand(source), taken(NodeDraw, draw)
    for policy in policies:
        controller(policy)  # refuses a wrong one before any work
    lines = []
    for policy in dict.fromkeys(policies):
        with waiting(f"{source}: {policy}"):
            lines.append(line_of(series, policy, node))
    report = sleep_report(series, lines, node)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_tables(report.tables, out)
        if can_draw():
            from ronda.bench.figures.draw import save_chart
            from ronda.bench.sleeping.lines import by_day, fan, nodes

            save_chart(nodes(series, lines), out / "nodes")
            save_chart(by_day(series, lines), out / "days")
            for forecast in [line.control.forecast for line in lines if line.control.forecast][:1]:
                if (chart := fan(series, forecast)) is not None:
                    save_chart(chart, out / "forecast")
    show(report, as_json=as_json)
