"""The cluster in front of a command: a round, or the files that its scheduler's tools write."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ronda.cli.load import round_
from ronda.cli.options import Parsed, stacked
from ronda.hosts.clusters.read import SYSTEMS, read_snapshot
from ronda.instances.errors import InputError
from ronda.instances.files.json import KINDS, OLDER, parse
from ronda.instances.files.storage import read_bytes, unpack
from ronda.instances.round import Round
from ronda.instances.rules.validate import consistent, cross_checked
from ronda.instances.site import GPUS
from ronda.instances.snapshots.rounds import round_of
from ronda.instances.snapshots.snapshot import Noted, Snapshot
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
    return snapshot_of(_round(files[0]))


def round_in_front(files: Sequence[str], system: str | None, seen: Snapshot) -> Round | None:
    """Return the round of the cluster that files show; None if it has no GPUs."""
    if system is None:
        return _round(files[0], every=False)
    if not any(node.has.get(GPUS, 0.0) >= 1 for node in seen.nodes):
        return None
    return round_of(seen, Noted())


def cluster_round(files: Sequence[str], system: str | None, now_s: float | None) -> Round:
    """Return the round of the cluster that files show, as `cluster` reads them.

    Raises
    ------
    InputError
        If it has no GPUs, or if a file cannot be read.
    """
    seen = cluster(files, system, now_s)
    found = round_in_front(files, system, seen)
    if found is None:
        raise InputError(seen.source, "no node with GPUs", "some: a round is about jobs with GPUs")
    return found


_REQUEST = re.compile(
    r"waiting\[(\d+)\]\.job\.(?:gpus|one_node|nodes|features|gpu_types|needs|slices|licences|part)\b"
)
"""The places of a round at which a waiting job asks for what the cluster could never give."""


def _round(source: str, *, every: bool = True) -> Round:
    """Return the round that an argument names, with `every` job that waits or those that can run.

    Whoever asks why a job waits that can never run is to hear why, not that the file is refused.
    """
    if not Path(source).is_file():
        return round_(source)
    found = parse(unpack(read_bytes(Path(source)), source), source, KINDS | OLDER)
    if not isinstance(found, Round):
        return round_(source)
    whole, odd = cross_checked(found)
    never = {int(match[1]) for one in odd if (match := _REQUEST.match(one.place)) is not None}
    if not never:
        return consistent(found, source)
    kept = tuple(state for k, state in enumerate(found.waiting) if k not in never)
    able = consistent(replace(found, waiting=kept), source)
    return replace(able, waiting=whole.waiting) if every else able
