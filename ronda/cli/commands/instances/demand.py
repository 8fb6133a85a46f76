"""``ronda instances demand``: the number of nodes that a schedule used, as a demand series."""

from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.options import Source, write_options


@taught(
    "demand",
    "ronda instances demand venus-vcvgl results/schedule.json.zst --out before.json",
    "ronda run venus-vcvgl --policy 'ces-queue(history=before.json)' --period 600",
)
@click.argument("source", metavar="INSTANCE", type=Source())
@click.argument("schedule", metavar="SCHEDULE", type=click.Path(path_type=Path))
@write_options
def command(source: str, schedule: Path, out: Path, as_json: bool) -> None:
    """Count the nodes that SCHEDULE used on INSTANCE, every ten minutes.

    Such a demand series is the HISTORY of policies that let nodes sleep, and the input of `ronda
    sleep`.
    """
    from ronda.cli.load import instance, schedule_of
    from ronda.cli.output import show
    from ronda.instances.files.json import write
    from ronda.instances.tables.table import Report
    from ronda.systems.helios.trace import demand_of

    found = instance(source)
    made = demand_of(found, schedule_of(schedule, source, found))
    write(made, out)
    most, mean = max(made.needed), float(made.needed_nodes.mean())
    fields = {"out": str(out), "steps": len(made.needed), "most": most, "mean": mean}
    told = f"{made.days:.1f} days, {mean:.1f} of {made.total[0]} nodes needed, at most {most}"
    show(Report(fields, [f"{out}: {told}"]), as_json=as_json)
