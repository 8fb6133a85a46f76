"""``ronda show-versions``: what a bug report needs to say."""

import click

from ronda.cli.command import Taught
from ronda.cli.options import json_option


@click.command(
    name="show-versions",
    cls=Taught,
    examples=("ronda show-versions",),
)
@json_option
def command(as_json: bool) -> None:
    """Show the versions of ronda, of what it rests on, and the kind of machine."""
    from ronda.bench.runs.provenance import commit, host
    from ronda.cli.output import display, emit, table
    from ronda.solvers.versions import versions

    if as_json:
        emit({"versions": versions(), "commit": commit(), "host": host()})
        return
    made = table("", "", left=2)
    made.show_header = False
    for name, text in {**versions(), "commit": commit(), **host()}.items():
        made.add_row(name, str(text))
    display(made)
