"""The cluster in front of a command: a round, or the files that its scheduler's tools write."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from ronda.cli.load import round_
from ronda.cli.options import Parsed, stacked
from ronda.hosts.clusters.read import SYSTEMS, read_snapshot
from ronda.instances.errors import InputError
from ronda.instances.snapshots.snapshot import Snapshot
from ronda.questions.why.of_round import snapshot_of


def _moment(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < 1e12 else None


MOMENT = Parsed("moment", "seconds since 1970, such as 1760000000", _moment)

cluster_options: Callable[[Any], Any] = stacked(
    *(
        click.option(
            f"--{system}",
            "system",
            flag_value=system,
            help=f"FILES are what the tools of {system} write.",
        )
        for system in SYSTEMS
    ),
    click.option(
        "--now",
        "now_s",
        type=MOMENT,
        metavar="SECONDS",
        help="When FILES were written, if they do not say so.",
    ),
)
"""The options that say how a command's files are read, as `system` and `now_s`."""


def cluster(files: Sequence[str], system: str | None, now_s: float | None) -> Snapshot:
    """Return the cluster that files show: a round's without `system`, else one of its scheduler.

    Raises
    ------
    InputError
        If a file cannot be read, or if a round is not one file.
    """
    if system is not None:
        return read_snapshot(system, files, now_s)
    if len(files) != 1:
        options = ", ".join(f"--{name}" for name in SYSTEMS)
        found = f"{len(files)} files without an option that says which scheduler's they are"
        raise InputError("FILES", found, f"a round, or one of {options}" if options else "a round")
    return snapshot_of(round_(files[0]))
