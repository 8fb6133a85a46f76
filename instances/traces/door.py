"""One door for any log: by the name of its reader, or as its first lines show."""

import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError, printable, short
from ronda.instances.files.storage import label
from ronda.instances.instance import Instance
from ronda.instances.rules.validate import validate
from ronda.instances.site import NO_SITE, Site
from ronda.instances.traces.columns import NAMED, columns_of
from ronda.instances.traces.logs.batsim import BatsimLog
from ronda.instances.traces.logs.instance import ReadLog, log_instance
from ronda.instances.traces.logs.runs import EVERY, LogFilter, LogRun, RowAccount
from ronda.instances.traces.logs.sacct import LogFormat, sacct_runs
from ronda.instances.traces.logs.seen_cluster import SeenCluster
from ronda.instances.traces.logs.stream import opened
from ronda.instances.traces.logs.swf import SwfLog
from ronda.instances.traces.recorded import Recorded
from ronda.instances.traces.rigid import Machine, plain_cluster

LOGS = ("sacct", "swf", "batsim")
"""The readers of what schedulers and simulators write."""

READERS = (*LOGS, *NAMED)
"""The readers by name; the columns of a table, as for ``convert table --map``, are one, too."""

PUBLISHED_NODES = {"openb": ((24, 1), (518, 2), (54, 4), (617, 8))}
"""Nodes with their GPUs, of traces that publish a list of them beside the jobs."""

COLUMNS = "submit=COLUMN,gpus=COLUMN,duration=COLUMN"
UTC = LogFormat(zone=ZoneInfo("UTC"))


@dataclass(frozen=True, kw_only=True)
class LogReading:
    """How a log is read, as far as it does not say so itself.

    The reader is one of `READERS`, columns as in submit=A,gpus=B,duration=C, a function of a path
    that returns an instance or a `ReadLog`, or empty if the log's first lines show it. `form` has
    the time zone of dates, and the columns of a log of Slurm without a header. The machines are the
    `cluster`, or were `seen` in other files, with the names that the log has for them. GPU types
    that ronda does not know are `described`. With `instant`, jobs that ended in the second in which
    they started are kept.
    """

    reader: str | Callable[[Path], Any] = ""
    form: LogFormat = UTC
    choice: LogFilter = EVERY
    cluster: Cluster | None = None
    seen: SeenCluster | None = None
    described: tuple[Machine, ...] = ()
    site: Site = NO_SITE
    instant: bool = False


class LogRuns(NamedTuple):
    """The runs of a log, the account of its rows, and its cluster, asked for once all are read."""

    runs: Iterator[LogRun]
    account: RowAccount
    cluster: Callable[[], SeenCluster | None] | None


def read_log(
    files: Sequence[Path], how: LogReading = LogReading(), *, name: str | None = None
) -> ReadLog:
    """Return the instance of a log, with the record of its runs and the account of its rows.

    Raises
    ------
    InputError
        If no reader is known for it, with all of them; and as of its reader.
    """
    first = files[0]
    if not isinstance(how.reader, str):
        return _of_others(how.reader, first)
    runs, account, seen_cluster = log_runs(files, how)
    cluster = how.cluster
    if cluster is None and how.seen is None and (nodes := PUBLISHED_NODES.get(how.reader)):
        cluster = plain_cluster(nodes)
    return log_instance(
        runs,
        account,
        place=" ".join(map(label, files[:3])),
        name=name or (first.name.split(".")[0] if str(first) != "-" else "log"),
        source=" ".join(path.name for path in files[:8]),
        cluster=cluster,
        seen_cluster=seen_cluster,
        described=how.described,
        start_s=how.choice.since_s,
        site=how.site,
        instant=how.instant,
    )


def log_runs(files: Sequence[Path], how: LogReading = LogReading()) -> LogRuns:
    """Return the runs of a log as a stream, for a reader that has a name or columns."""
    account, reader = RowAccount(), how.reader or _recognised(files[0], how.form.columns)
    if not isinstance(reader, str):
        raise InputError("--reader", "a function", f"one of {', '.join(READERS)}")
    seen = None if how.seen is None else partial(copy, how.seen)
    if reader == "sacct":
        return LogRuns(sacct_runs(files, how.form, account, how.choice), account, seen)
    of_sacct = {"--columns": how.form.columns, "--device cpu": how.choice.device == "cpu"}
    for option in (option for option, given in of_sacct.items() if given):
        raise InputError(option, f"a log for the reader {reader}", "a log of sacct")
    if len(files) > 1:
        raise InputError("FILE", f"{len(files)} files", "one, as each numbers its own jobs")
    if reader in LOGS:
        kind: type[SwfLog] | type[BatsimLog] = SwfLog if reader == "swf" else BatsimLog
        log = kind(files[0], account, how.choice)
        own = partial(log.cluster, how.described)
        return LogRuns(log.runs(), account, seen or own)
    if reader not in NAMED and "=" not in reader and not reader.endswith(".json"):
        raise InputError("--reader", repr(reader), f"one of {', '.join(READERS)}, or {COLUMNS}")
    from ronda.instances.traces.logs.rows import table_runs  # loads pandas

    runs = table_runs(files[0], columns_of(reader), account, how.choice)
    return LogRuns(runs, account, seen)


def _of_others(read: Callable[[Path], Any], path: Path) -> ReadLog:
    """Return what a reader of another package returns for a file."""
    _, *more = signature(read).parameters.values()
    if needed := [each.name for each in more if each.default is each.empty]:
        found = f"one that needs {' and '.join(needed)} as well"
        raise InputError("--reader", found, "a reader of a file alone")
    made = read(path)
    if isinstance(made, ReadLog):
        return made
    if not isinstance(made, Instance):
        raise InputError(label(path), f"a {type(made).__name__} of its reader", "an instance")
    submits = [job.submit_s for job in validate(made).jobs]
    used_s = sum(job.gpus * job.truth.work for job in made.jobs if job.truth is not None)
    return ReadLog(
        instance=replace(made, made={"notes": [], **made.made}),
        recorded=Recorded({}, max(submits)),
        account=RowAccount(rows=len(made.jobs)),
        runs=0,
        gpu_hours=0.0,
        load=used_s / (max(1.0, max(submits) - min(submits)) * made.cluster.gpus),
        machines="given",
    )


def _recognised(path: Path, columns: Sequence[str]) -> str:
    """Return the reader of a log as its first lines show it; other tables could be anything."""
    if columns:
        return "sacct"
    with opened(path) as file:
        head = file.peek(1 << 16)
        whole = head.lstrip()[:1] == b"{" and str(path) != "-"
        text = (file.read() if whole else head).decode(errors="replace").lstrip("\ufeff \r\n\t")
    line = text.partition("\n")[0].strip()
    words = line.split()
    names = {name.partition("%")[0] for name in re.split(r"[^\w%]+", line.lower())}
    told = {
        "batsim": text.startswith("{") and '"nb_res"' in text,
        "swf": line.startswith(";") or (len(words) == 18 and all(map(_NUMBER.fullmatch, words))),
        "sacct": ('"jobs"' in text) if text[:1] == "{" else len(names & _HEADER) > 1,
    }
    for reader, shown in told.items():
        if shown:
            return reader
    found = f"a log that begins with {printable(short(line, 60))!r}" if line else "an empty file"
    raise InputError(label(path), found, f"--reader and one of {', '.join(READERS)}, or {COLUMNS}")


_HEADER = frozenset({"jobid", "state", "submit"})
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?")
