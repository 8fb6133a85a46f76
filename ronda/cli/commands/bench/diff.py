"""``ronda bench diff``: what changed between two folders of results."""

from pathlib import Path

import click

from ronda.bench.runs.results import results_in
from ronda.bench.suites.diff import difference
from ronda.cli.command import taught
from ronda.cli.options import FOLDER, json_option
from ronda.cli.output import display, emit, tell


@taught("diff", "ronda bench diff results-0.1 results-0.2")
@click.argument("before", metavar="BEFORE", type=FOLDER)
@click.argument("after", metavar="AFTER", type=FOLDER)
@json_option
def command(before: Path, after: Path, as_json: bool) -> int:
    """Say what changed between the results in two folders, beyond noise.

    Runs of the same instance, changes, policy and seed are pairs. The exit code is 1 if a run fails
    that did not, or a figure is worse beyond noise; docs/statistics.md says when that is.
    """
    found = difference(results_in(before), results_in(after))
    if as_json:
        emit(found.fields())
        return int(found.worse)
    for line in found.how:
        tell(line)
    for words, titles in (("fails now", found.new), ("fails no more", found.gone)):
        for title in titles:
            tell(f"{words}: {title}")
    if found.rows:
        display(found.table())
    beyond = [c.verdict for *_, changes in found.rows for c in changes.values()]
    worse, better = beyond.count("worse"), beyond.count("better")
    fail = f"{len(found.new)} runs fail now that did not"
    tell(f"{worse} figures are worse and {better} better beyond noise; {fail}")
    return int(found.worse)
