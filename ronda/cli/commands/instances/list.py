"""``ronda instances list``: the packaged instances."""

from ronda.cli.command import taught
from ronda.cli.options import json_option
from ronda.cli.output import display, emit, table
from ronda.instances.files.packaged import entries


@taught("list", "ronda instances list")
@json_option
def command(as_json: bool) -> None:
    """List the packaged instances, rounds and demand series."""
    if as_json:
        emit({"entries": entries()})
        return
    made = table("name", "kind", "jobs", "nodes", "GPUs", "", left=2)
    made.columns[-1].justify = "left"
    for entry in entries():
        sizes = (entry.jobs, entry.nodes, entry.gpus)
        numbers = (f"{size:,}" if size else "" for size in sizes)
        made.add_row(entry.name, entry.kind, *numbers, entry.description)
    display(made)
