"""The Standard Workload Format of the Parallel Workloads Archive, all of its 18 fields.

See Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP
1999, and the archive's page on the format, version 2.2. Processors are read as GPUs. Names that the
format has no place for stand in notes of its header, as ``ronda export`` writes them: ``user 1 is
ann``, and ``nodes 4 of 8 processors, partition 1, type a100``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path

from msgspec.structs import replace

from ronda.instances.cluster import NodeGroup
from ronda.instances.errors import printable, short
from ronda.instances.files.storage import label
from ronda.instances.job import After
from ronda.instances.traces.logs.runs import EVERY, LogFilter, LogRun, RowAccount, refuse_unreadable
from ronda.instances.traces.logs.seen_cluster import SeenCluster, seen_groups
from ronda.instances.traces.logs.stream import opened
from ronda.instances.traces.rigid import Machine, machine_of
from ronda.instances.traces.text import number

PROCESSOR = "processor"
"""The GPU type of a log that names none."""

STATES = {0: "FAILED", 1: "COMPLETED", 5: "CANCELLED", -1: "UNKNOWN"}
PARTS = {2: "REQUEUED", 3: "COMPLETED", 4: "FAILED"}
"""States by field 11 of whole jobs, and of parts of jobs, which follow their job."""

_COMMENT = re.compile(r";\s*(\w+):\s*(.*)")
_NAMED = re.compile(r"(user|group|executable|job) ([0-9]+) is (.+)")
_NODES = re.compile(r"nodes ([0-9]+) of ([0-9]+) processors, partition ([0-9-]+), type (.+)")


@dataclass
class SwfHeader:
    """The comments of a log's header.

    Attributes
    ----------
    texts
        The first value of each comment, by its label.
    names
        The names of partitions, queues, users, groups, executables and jobs by number.
    nodes
        Nodes as (count, processors of each, number of the partition, type of GPU).
    """

    texts: dict[str, str] = field(default_factory=dict)
    names: dict[str, dict[int, str]] = field(default_factory=dict)
    nodes: list[tuple[int, int, int, str]] = field(default_factory=list)

    def read(self, line: str) -> None:
        """Add a comment."""
        found = _COMMENT.match(line)
        if found is None:
            return
        key, value = found[1], found[2].strip()
        self.texts.setdefault(key, value)
        if key in ("Partition", "Queue") and (told := re.match(r"([0-9]+)\s+(.+)", value)):
            self.names.setdefault(key.lower(), {})[int(told[1])] = told[2]
        elif key == "Note" and (told := _NAMED.fullmatch(value)):
            self.names.setdefault(told[1], {})[int(told[2])] = told[3]
        elif key == "Note" and (told := _NODES.fullmatch(value)):
            self.nodes.append((int(told[1]), int(told[2]), int(told[3]), told[4]))

    def name(self, kind: str, value: float) -> str:
        """Return the name of a number, which is by default the number itself; "" if unknown."""
        return "" if value < 0 else self.names.get(kind, {}).get(int(value), f"{value:g}")

    def count(self, key: str) -> int:
        """Return the number in a comment, or 0."""
        found = re.match(r"[0-9]{1,12}", self.texts.get(key, ""))
        return int(found[0]) if found else 0


class SwfLog:
    """A log in the Standard Workload Format, whose header is known once its runs are read.

    Raises
    ------
    InputError
        While the runs are read: if the file cannot be read, or if more than a hundredth of its rows
        are not numbers.
    """

    def __init__(self, path: Path, account: RowAccount, part: LogFilter = EVERY) -> None:
        self.path, self.account, self.part = path, account, part
        self.header = SwfHeader()

    def runs(self) -> Iterator[LogRun]:
        """Yield the runs of jobs, on the clock of the Unix epoch."""
        job, parts = LogRun(place="", job=""), list[LogRun]()
        with opened(self.path) as file:
            for row, raw in enumerate(file, 1):
                line = raw.decode(errors="backslashreplace").strip()
                if line.startswith(";"):
                    self.header.read(line)
                elif line:
                    self.account.rows += 1
                    fields = self._fields(line, f"row {row}")
                    if fields is not None and int(fields[11]) in PARTS:
                        self._part(fields, job, parts, f"row {row}")
                    elif fields is not None:
                        yield from self._whole(job, parts)
                        job, parts = self._job(fields, f"row {row}"), []
        yield from self._whole(job, parts)
        refuse_unreadable(self.account, label(self.path), (UNREADABLE_LINE,))

    def _fields(self, line: str, place: str) -> list[float] | None:
        """Return the 18 fields, numbered from 1 on, or count a line that is none."""
        words = line.split()
        fields = [nan, *map(number, words)]
        if not 5 <= len(words) <= 18 or any(value != value for value in fields[1:]):
            shown = repr(printable(short(line, 60)))
            self.account.drop(UNREADABLE_LINE, f"{place}: {shown}")
            return None
        return fields + [-1.0] * (19 - len(fields))

    def _job(self, fields: Sequence[float], place: str) -> LogRun:
        """Return the run of a job that is not cut into parts."""
        header, zero_s = self.header, float(self.header.count("UnixStartTime"))
        devices = fields[5] if fields[5] > 0 else fields[8]
        submit_s = fields[2] + zero_s if fields[2] >= 0 else nan
        start_s = submit_s + max(0.0, fields[3]) if fields[4] >= 0 else nan
        preceding = fields[17]
        return LogRun(
            place=place,
            job=header.name("job", fields[1]) or "?",
            state=STATES.get(int(fields[11]), "UNKNOWN"),
            submit_s=submit_s,
            start_s=start_s,
            end_s=start_s + fields[4] if fields[4] >= 0 else nan,
            supposed=fields[3] < 0,
            ran_s=fields[4] if fields[4] >= 0 else nan,
            limit_s=fields[9] if fields[9] > 0 else inf,
            user=header.name("user", fields[12]),
            account=header.name("group", fields[13]),
            name=header.name("executable", fields[14]),
            qos=header.name("queue", fields[15]),
            partition=header.name("partition", fields[16]),
            gpus=max(0.0, devices),
            asked=(),
            memory_gib=max(0.0, fields[10] if fields[10] > 0 else fields[7]) * devices / 2**20,
            after=None
            if preceding <= 0
            else After(job=header.name("job", preceding), when="any", delay_s=max(0.0, fields[18])),
        )

    def _part(self, fields: Sequence[float], job: LogRun, parts: list[LogRun], place: str) -> None:
        """Add a part to those of its job, whose line stands before it."""
        if not job.place or self.header.name("job", fields[1]) != job.job:
            self.account.drop("a part of a job without a line of the job before it", place)
            return
        ready_s = parts[-1].end_s if parts else job.submit_s
        start_s = ready_s + max(0.0, fields[3])
        part = replace(
            job,
            place=place,
            state=PARTS[int(fields[11])],
            gpus=fields[5] if fields[5] > 0 else job.gpus,
            start_s=start_s,
            end_s=start_s + fields[4],
            ran_s=fields[4],
            supposed=False,
        )
        parts.append(part)

    def _whole(self, job: LogRun, parts: Sequence[LogRun]) -> Iterator[LogRun]:
        """Yield a job's run, or its parts in place of it; count a job that is not read.

        A job that was stopped goes on: its last part does the work that is left, so the work of
        the parts is that of the job.
        """
        if not job.place:
            return
        why = self.part.leaves_out(job)
        if why is None and job.submit_s != job.submit_s:
            why = "no time of submission"
        elif why is None and (job.gpus <= 0 or job.gpus % 1):
            why = "no processors" if job.gpus <= 0 else "a part of a processor"
        if why is not None:
            for each in (job, *parts):
                self.account.drop(why, each.place)
            return
        if parts:
            self.account.folded["sums of parts"] += 1
            for each in parts:
                each.total_s = sum(own.ran_s for own in parts)
        for each in parts or (job,):
            self.account.until_s = max(self.account.until_s, each.known_s)
            yield each

    def cluster(self, described: Sequence[Machine]) -> SeenCluster | None:
        """Return the cluster that the header describes; None if it has several partitions.

        The format has the nodes and processors of the whole machine only. With `described` the
        processors are GPUs of the first type.
        """
        header, names = self.header, self.header.names.get("partition", {})
        kind = described[0].gpu.name if described else PROCESSOR
        nodes = header.nodes
        if not nodes and len(names) <= 1:
            processors = header.count("MaxProcs") or header.count("MaxNodes")
            count = min(header.count("MaxNodes") or processors, processors)
            each, more = divmod(processors, count) if count else (0, 0)
            sizes = ((more, each + 1), (count - more, each))
            nodes = [(n, size, next(iter(names), -1), kind) for n, size in sizes if n and size]
        if not nodes:
            return None
        groups = [
            NodeGroup(
                name=f"nodes{k}",
                count=count,
                gpus_per_node=size,
                gpu_type=name,
                partition=header.name("partition", partition) or "default",
                host_idle_w=machine_of(name, described).host_idle_w,
            )
            for k, (count, size, partition, name) in enumerate(nodes, 1)
        ]
        home = {group.partition: (group.partition, ()) for group in groups}
        many = sum(group.count for group in groups)
        notes = [f"cluster: {many:,} nodes of the header; processors are GPUs"]
        return seen_groups(groups, {}, home, described, notes)


UNREADABLE_LINE = "a line that is not 18 numbers"
