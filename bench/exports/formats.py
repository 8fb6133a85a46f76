"""The formats of a schedule by name, and the choice of a format from a file's name."""

from collections.abc import Callable
from pathlib import Path

from ronda.bench.exports.chrome_trace import chrome_trace
from ronda.bench.exports.job_table import batsim_jobs, job_table
from ronda.bench.exports.workload import standard_workload
from ronda.instances.errors import InputError
from ronda.instances.files.storage import label, packer, write_bytes
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule

Make = Callable[[Instance, Schedule], str]
"""Makes the text of a schedule."""

FORMATS: dict[str, tuple[Make, tuple[str, ...]]] = {
    "perfetto": (chrome_trace, (".json", ".json.gz")),
    "csv": (job_table, (".csv",)),
    "swf": (standard_workload, (".swf",)),
    "batsim": (batsim_jobs, (".csv",)),
}
"""The function and the file suffixes of each format; of equal suffixes the first format wins."""


def format_of(path: Path, name: str | None) -> Make:
    """Return the function that makes a format, by name or file suffix; refuse a wrong suffix."""
    meant = [*FORMATS.values()] if name is None else [FORMATS[name]]
    for make, suffixes in meant:
        if path.name.endswith(suffixes):
            return make
    ends = dict.fromkeys(suffix for _, suffixes in meant for suffix in suffixes)
    raise InputError(label(path), "another suffix", f"a name that ends in {' or '.join(ends)}")


def write_schedule(
    instance: Instance, schedule: Schedule, path: Path, name: str | None = None
) -> None:
    """Write a schedule that keeps the rules of its instance, whole or not at all.

    `name` is the name of the format; with None, the file's suffix decides.
    """
    text = format_of(path, name)(instance, schedule).encode()
    write_bytes(path, packer(path)(text) if path.name.endswith(".gz") else text)
