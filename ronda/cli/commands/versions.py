"""``ronda show-versions``: what a bug report needs to say."""

import click

from ronda.bench.runs import commit, host
from ronda.cli.command import Taught
from ronda.cli.options import json_option
from ronda.cli.output import display, emit, facts
from ronda.solvers.versions import versions


@click.command(
    name="show-versions",
    cls=Taught,
    examples=("ronda show-versions",),
)
@json_option
def command(as_json: bool) -> None:
    """Show the versions of ronda, of what it rests on, and the kind of machine."""
    if as_json:
        emit({"versions": versions(), "commit": commit(), "host": host()})
        return
    found = {**versions(), "commit": commit(), **host()}
    display(facts((name, str(text)) for name, text in found.items()))
