"""``ronda instances list``: the packaged instances."""

from ronda.cli.command import taught
from ronda.cli.options import json_option
from ronda.cli.output import show
from ronda.instances.files.packaged import entries
from ronda.instances.tables.table import Report, Table


@taught("list", "ronda instances list")
@json_option
def command(as_json: bool) -> int:
    """List the packaged instances, rounds and demand series."""
    rows = (
        {
            "name": entry.name,
            "kind": entry.kind,
            "jobs": f"{entry.jobs:,}" if entry.jobs else "",
            "nodes": f"{entry.nodes:,}" if entry.nodes else "",
            "GPUs": f"{entry.gpus:,}" if entry.gpus else "",
            "": entry.description,
        }
        for entry in entries()
    )
    table = Table.of("", rows, left=(0, 1, -1))
    return show(Report({"entries": entries()}, [table]), as_json=as_json)
