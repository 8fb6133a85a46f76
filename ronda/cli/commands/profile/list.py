"""``ronda profile list``: the packaged models and their errors."""

import click

from ronda.cli.command import taught
from ronda.cli.options import json_option
from ronda.cli.output import show
from ronda.instances.errors import InputError
from ronda.instances.files.fits import fitted
from ronda.instances.tables.fits import errors_table, families_table
from ronda.instances.tables.table import Report


@taught("list", "ronda profile list", "ronda profile list zeus-resnet50-V100")
@click.argument("word", required=False, default="")
@json_option
def command(word: str, as_json: bool) -> int:
    """List the packaged models with their errors, or those whose name contains WORD.

    Without WORD, one line covers all batch sizes of a power curve, and its errors are their
    medians.
    """
    found = fitted(word)
    if not found:
        raise InputError("WORD", repr(word), "a part of a name that `ronda profile list` shows")
    table = errors_table(found) if word else families_table(found)
    return show(Report({"fits": found}, [table]), as_json=as_json)
