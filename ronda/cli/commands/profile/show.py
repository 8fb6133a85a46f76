"""``ronda profile show``: a model, its parameters, and how far to trust it."""

import click

from ronda.cli.command import taught
from ronda.cli.options import Source, json_option
from ronda.cli.output import show
from ronda.instances.files.fits import find_fits, fitted
from ronda.instances.tables.fits import fit_tables
from ronda.instances.tables.table import Report


@taught("show", "ronda profile show zeus-resnet50-V100-b256", "ronda profile show profile.json")
@click.argument("source", metavar="NAME", type=Source(lambda: (fit.name for fit in fitted())))
@json_option
def command(source: str, as_json: bool) -> int:
    """Show NAME, a packaged model or a file that `ronda profile fit` wrote."""
    fits = find_fits(source)
    tables = [table for fit in fits for table in fit_tables(fit)]
    return show(Report({"fits": fits}, tables), as_json=as_json)
