"""``ronda bench diff``: the changes between two folders of results."""

from pathlib import Path

import click

from ronda.bench.runs.results import results_in
from ronda.bench.suites.diff import difference
from ronda.cli.command import taught
from ronda.cli.options import FOLDER, json_option
from ronda.cli.output import show


@taught("diff", "ronda bench diff results-0.1 results-0.2")
@click.argument("before", metavar="BEFORE", type=FOLDER)
@click.argument("after", metavar="AFTER", type=FOLDER)
@json_option
def command(before: Path, after: Path, as_json: bool) -> int:
    """Say what changed between the results in two folders, beyond noise.

    Runs with the same instance, changes, policy and seed are paired. The exit code is 1 if a run
    fails that did not fail before, or if a figure is worse beyond noise (see docs/statistics.md).
    """
    return show(difference(results_in(before), results_in(after)).report(), as_json=as_json)
