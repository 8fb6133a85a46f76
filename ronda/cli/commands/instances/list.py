"""``ronda instances list``: the packaged instances."""

from ronda.cli.command import taught
from ronda.cli.options import json_option
from ronda.cli.output import display, emit, table
from ronda.instances.files.catalogue import entries


@taught("list", "ronda instances list")
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
