"""``ronda verify``: prove from files alone how far a plan is from the best."""

import click

from ronda.cli.command import taught
from ronda.cli.options import json_option


@taught(
    "verify",
    "ronda solve round.json --policy milp --out plan.json --certificate certificate.json",
    "ronda verify round.json plan.json certificate.json",
)
@click.argument("files", metavar="ROUND PLAN CERTIFICATE", nargs=3)
@json_option
def command(files: tuple[str, ...], as_json: bool) -> int:
    """Prove that a PLAN of a ROUND keeps its limits, what it is worth, and that none is worth more.

    The files are JSON as ronda writes it, not compressed. The proof trusts no solver: it is one
    file of plain Python, which runs without ronda, in exact fractions (docs/certificates.md). The
    exit code is 0 if all is proven, 1 if a number is wrong, and 2 if a file cannot be used.
    """
    from ronda.questions.certificates.verify import main

    return main([*files, *["--json"] * as_json])
