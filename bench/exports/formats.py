"""The formats of a schedule by name, and the one that a file's name asks for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ronda.bench.exports.batsim import batsim_jobs
from ronda.bench.exports.chrome_trace import chrome_trace
from ronda.bench.exports.job_table import job_table
from ronda.bench.exports.workload import standard_workload
from ronda.instances.errors import InputError
from ronda.instances.files.storage import label, packer, write_bytes
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule


@dataclass(frozen=True, slots=True)
class ScheduleFormat:
    """How a schedule is written: what makes the text, and how names of its files end."""

    make: Callable[[Instance, Schedule], str]
    suffixes: tuple[str, ...]


FORMATS = {
    "perfetto": ScheduleFormat(chrome_trace, (".json", ".json.gz")),
    "csv": ScheduleFormat(job_table, (".csv",)),
    "swf": ScheduleFormat(standard_workload, (".swf",)),
    "batsim": ScheduleFormat(batsim_jobs, (".csv",)),
}
"""By name; of two with a suffix, the first is meant by it."""


def format_of(path: Path, name: str | None) -> ScheduleFormat:
    """Return a format by its name, or that of a file's name; refuse a name that does not fit."""
    meant = FORMATS.values() if name is None else [FORMATS[name]]
    for each in meant:
        if path.name.endswith(each.suffixes):
            return each
    ends = dict.fromkeys(suffix for each in meant for suffix in each.suffixes)
    raise InputError(label(path), "another suffix", f"a name that ends in {' or '.join(ends)}")


def write_schedule(
    instance: Instance, schedule: Schedule, path: Path, name: str | None = None
) -> None:
    """Write a schedule that keeps the rules of its instance, whole or not at all.

    `name` is that of the format; None: as the suffix says.
    """
    text = format_of(path, name).make(instance, schedule).encode()
    write_bytes(path, packer(path)(text) if path.name.endswith(".gz") else text)
