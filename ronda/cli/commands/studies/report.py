"""``ronda report``: a folder of results as one HTML page."""

from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.options import json_option
from ronda.cli.output import show
from ronda.cli.progress import Bars
from ronda.instances.errors import need
from ronda.instances.tables.table import Report

PACKAGES = ("itables", "jinja2", "plotly")
"""The packages that a page requires."""


@taught(
    "report",
    "ronda report compare-out",
    "ronda report frontier-out",
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@json_option
def command(folder: Path, as_json: bool) -> int:
    """Show the results in FOLDER as one HTML page that needs no network: FOLDER/report.html.

    FOLDER comes from compare, frontier, anytime or run. The page has tables, charts, each run round
    by round, and the provenance of all numbers; it also names missing parts.
    """
    page = written(folder)
    fields = {"page": str(page), "bytes": page.stat().st_size}
    return show(Report(fields, [f"report: {page}"]), as_json=as_json)


def written(folder: Path) -> Path:
    """Write the page of a folder while showing a progress bar, and return the page's path."""
    need("ronda report", *PACKAGES)
    from ronda.bench.report.page import write_report

    with Bars() as bars:
        return write_report(folder, lambda share, name: bars.update("report", share, name))
