"""``ronda instances list``: the packaged instances."""

import click

from ronda.cli.command import Taught
from ronda.cli.options import json_option
from ronda.cli.output import display, emit, table
from ronda.instances.files.catalogue import entries


@click.command(name="list", cls=Taught, examples=("ronda instances list",))
@json_option
def command(as_json: bool) -> None:
    """List the packaged instances and rounds."""
    if as_json:
        emit({"entries": entries()})
        return
    made = table("name", "kind", "jobs", "nodes", "GPUs", "", left=2)
    made.columns[-1].justify = "left"
    for entry in entries():
        numbers = (f"{entry.jobs:,}", f"{entry.nodes:,}", f"{entry.gpus:,}")
        made.add_row(entry.name, entry.kind, *numbers, entry.description)
    display(made)
