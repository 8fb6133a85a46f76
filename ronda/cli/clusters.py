"""The cluster in front of a command: a round, or the files that its scheduler's tools write."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ronda.cli.load import kind_of, round_
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
    return number if 0 <= (number := float(text)) < 1e12 else None


MOMENT = Parsed("seconds", "seconds since 1970, such as 1760000000", _moment)

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
        help="When FILES were written, if they do not say so.",
    ),
)
"""The options that say how a command's files are read, as `system` and `now_s`."""


class InFront:
    """A cluster in front of a command, of which files are read once.

    `snapshot` makes the cluster of its `round`, if that is what was read.
    """

    def __init__(self, snapshot: Callable[[], Snapshot], round: Round | None = None) -> None:
        self._make, self._read = snapshot, round

    @cached_property
    def snapshot(self) -> Snapshot:
        """The cluster, with every job that waits."""
        return self._make()

    @cached_property
    def round(self) -> Round | None:
        """The round of the cluster, without jobs that can never run; None if it has no GPUs."""
        if self._read is not None:
            return self._read
        if not any(node.has.get(GPUS, 0.0) >= 1 for node in self.snapshot.nodes):
            return None
        return round_of(self.snapshot, Noted())

    def needed_round(self) -> Round:
        """Return the round of the cluster; refuse one without GPUs."""
        if self.round is None:
            expected = "some: a round is about jobs with GPUs"
            raise InputError(self.snapshot.source, "no node with GPUs", expected)
        return self.round


def in_front(files: Sequence[str], system: str | None, now_s: float | None) -> InFront:
    """Return the cluster that files show: a round's without `system`, else one of its scheduler.

    Raise InputError if a file cannot be read, or if a round is not one file.
    """
    if system is not None:
        seen = read_snapshot(system, files, now_s)
        return InFront(lambda: seen)
    if len(files) != 1:
        options = ", ".join(f"--{name}" for name in SYSTEMS)
        found = f"{len(files)} files without an option that says which scheduler's they are"
        raise InputError("FILES", found, f"a round, or one of {options}" if options else "a round")
    if not Path(files[0]).is_file():
        read = round_(files[0])
        return InFront(lambda: snapshot_of(read), read)
    return decoded(unpack(read_bytes(Path(files[0])), files[0]), files[0])


def cluster(files: Sequence[str], system: str | None, now_s: float | None) -> Snapshot:
    """Return the cluster that files show, as `in_front` reads them."""
    return in_front(files, system, now_s).snapshot


_REQUEST = re.compile(
    r"waiting\[(\d+)\]\.job\.(?:gpus|one_node|nodes|features|gpu_types|needs|slices|licences|part)\b"
)
"""The places of a round at which a waiting job asks for what the cluster could never give."""


def decoded(text: bytes, place: str) -> InFront:
    """Return the round in a JSON text; its waiting jobs may ask for what nothing can give.

    Whoever asks why a job waits that can never run is to hear why, not that the file is refused.
    """
    found = parse(text, place, KINDS | OLDER)
    if not isinstance(found, Round):
        hint = f"a round (drive a whole horizon with: ronda run {place})"
        raise InputError(place, kind_of(found), hint)
    whole, odd = cross_checked(found)
    never = {int(match[1]) for one in odd if (match := _REQUEST.match(one.place)) is not None}
    kept = tuple(state for k, state in enumerate(found.waiting) if k not in never)
    able = consistent(replace(found, waiting=kept) if never else found, place)
    every = replace(able, waiting=whole.waiting) if never else able
    return InFront(lambda: snapshot_of(every), able)
