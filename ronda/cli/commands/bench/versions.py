"""``ronda bench versions``: results by version, regressions shown."""

from datetime import UTC, datetime
from pathlib import Path

import click

from ronda.bench.figures.page import fill_file
from ronda.bench.runs.results import RESULTS, results_in
from ronda.cli.command import taught
from ronda.cli.options import FOLDER, into_option, json_option
from ronda.cli.output import display, emit
from ronda.instances.errors import InputError

PART = "versions"
"""The name of the marks between which a page has the tables."""


@taught(
    "versions",
    "ronda bench versions                      the tables of what is known; reads no results",
    "ronda bench versions headline-out --data bench/data --into docs/benchmarks/versions.md",
)
@click.argument("folders", metavar="[DIR]...", type=FOLDER, nargs=-1)
@click.option(
    "--data",
    type=FOLDER,
    metavar="FOLDER",
    help="Folder of versions.json (bench/data in a checkout); the packaged one is only read.",
)
@into_option(PART)
@json_option
def command(
    folders: tuple[Path, ...], data: Path | None, into: tuple[Path, ...], as_json: bool
) -> None:
    """Add the results of comparisons to those of earlier versions, and show what became worse.

    Each DIR is a folder of `ronda compare`. What was known of the same instance, policy, knowledge
    and version is replaced. A figure is a regression if it is worse beyond noise, as in `ronda
    bench diff`, or a run fails that did not.
    """
    from ronda.bench.registry.records import PACKAGED
    from ronda.bench.registry.versions import (
        FILE,
        VersionHistory,
        judged,
        load,
        measured,
        store,
        tables_of,
    )

    if folders and data is None:
        raise InputError("--data", "none", "the folder of the results that are to change")
    for page in into:
        fill_file(page, PART)  # one without the marks is told before any work
    folder = data or PACKAGED
    new = not (folder / FILE).exists() and folder.is_dir() and folders
    history = VersionHistory() if new else load(folder)
    for each in folders:
        results = results_in(each)
        day = datetime.fromtimestamp((each / RESULTS).stat().st_mtime, UTC)
        history = history.with_records(measured(results, f"{day:%Y-%m-%d}"))
    if folders:
        store(history, folder)
    found = judged(history)
    tables = tables_of(found)
    for page in into:
        fill_file(page, PART, "\n".join(table.markdown() for table in tables))
    if as_json:
        emit({"records": [each.fields() for each in found]})
    else:
        display(*tables)
