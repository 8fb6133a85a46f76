"""``ronda show-versions``: what a bug report needs to say."""

from ronda.bench.runs.provenance import commit, host
from ronda.cli.command import taught
from ronda.cli.options import json_option
from ronda.cli.output import display, emit, facts
from ronda.solvers.versions import versions


@taught("show-versions", "ronda show-versions")
@json_option
def command(as_json: bool) -> None:
    """Show the versions of ronda, of what it rests on, and the kind of machine."""
    if as_json:
        emit({"versions": versions(), "commit": commit(), "host": host()})
        return
    found = {**versions(), "commit": commit(), **host()}
    display(facts((name, str(text)) for name, text in found.items()))
