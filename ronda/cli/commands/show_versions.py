"""``ronda show-versions``: the versions that a bug report should state."""

from ronda.bench.runs.provenance import commit, host
from ronda.cli.command import taught
from ronda.cli.options import json_option
from ronda.cli.output import show
from ronda.instances.tables.table import Report, Table
from ronda.solvers.versions import versions


@taught("show-versions", "ronda show-versions")
@json_option
def command(as_json: bool) -> int:
    """Show the versions of ronda and its dependencies, and the kind of machine."""
    facts = {**versions(), "commit": commit(), **host()}
    fields = {"versions": versions(), "commit": commit(), "host": host()}
    return show(Report(fields, [Table.facts(facts)]), as_json=as_json)
