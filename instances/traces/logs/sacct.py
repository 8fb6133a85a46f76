"""Slurm's accounting, as ``sacct --parsable2`` and ``sacct --json`` write it.

See the manual page sacct(1). A row of text has the columns in any order, with any delimiter and,
if `LogFormat.columns` names them, without a header. Names of jobs may hold the delimiter and line
breaks, as nothing is quoted.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, isnan, nan
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ronda.instances.errors import InputError, printable, short
from ronda.instances.files.storage import label, unpack
from ronda.instances.traces.logs.runs import (
    EVERY,
    STEPS,
    LogFilter,
    LogRun,
    RowAccount,
    refuse_unreadable,
)
from ronda.instances.traces.logs.stream import opened
from ronda.instances.traces.slurm_cells import (
    ONGOING,
    SILENT,
    LocalClock,
    gpus_of,
    lasting,
    limit_s,
    memory_gib,
    node_names,
    number,
    settled,
    slurm_id,
    tres,
    tres_entries,
    waiting_tasks,
)

READ = frozenset(
    {
        *("jobid", "jobname", "user", "account", "partition", "qos", "submit", "eligible"),
        *("start", "end", "elapsed", "elapsedraw", "suspended", "state", "timelimit"),
        *("timelimitraw", "alloctres", "reqtres", "allocgres", "reqgres", "reqmem", "nodelist"),
        *("nnodes", "allocnodes", "ncpus", "alloccpus", "reqcpus", "constraints", "cluster"),
        "consumedenergyraw",
    }
)
"""The columns that are read, in lower case."""

FREE = ("jobname", "comment", "admincomment", "systemcomment", "workdir", "submitline", "extra")
"""Columns whose text may hold the delimiter or line breaks."""

UNREADABLE_ROWS = ("a cell that cannot be read", "a row that cannot be read")


@dataclass(frozen=True, kw_only=True)
class LogFormat:
    """What a log does not say of itself.

    Attributes
    ----------
    zone
        Time zone of its dates.
    columns
        Names of its columns if it has no header, as in sacct's ``--format``.
    """

    zone: ZoneInfo
    columns: tuple[str, ...] = ()


def sacct_runs(
    paths: Sequence[Path], how: LogFormat, account: RowAccount, choice: LogFilter = EVERY
) -> Iterator[LogRun]:
    """Yield the runs in files of ``sacct``, one after the other, and count all other rows.

    A file may be compressed; ``-`` is standard input. Text is read as a stream. A file that begins
    with a brace is the output of ``sacct --json``, which is read as a whole.

    Raises
    ------
    InputError
        If a file cannot be read, has no column that is needed, has jobs of two clusters, or if more
        than a hundredth of its rows cannot be read.
    """
    reader = _Reader(how, account, choice)
    for path in paths:
        place = "standard input" if str(path) == "-" else label(path)
        prefix = f"{place}, " if len(paths) > 1 else ""
        with opened(path) as file:
            if file.peek(64).lstrip()[:1] == b"{":
                yield from reader.objects(file.read(), place, prefix)
            else:
                yield from reader.lines(file, place, prefix)
        refuse_unreadable(account, place, UNREADABLE_ROWS)


class _Reader:
    """A reader of rows with the columns of one file."""

    def __init__(self, how: LogFormat, account: RowAccount, choice: LogFilter) -> None:
        self.how, self.account, self.choice = how, account, choice
        self.clock = LocalClock(how.zone)
        self.cluster = ""
        self.requeued: set[str] = set()

    def lines(self, file: Iterable[bytes], place: str, prefix: str) -> Iterator[LogRun]:
        """Yield the runs in lines of text."""
        rows = enumerate((line.decode(errors="backslashreplace") for line in file), 1)
        first = next(((k, text) for k, text in rows if text.strip()), None)
        if first is None:
            raise InputError(place, "an empty file", "the output of sacct")
        names, delimiter, headed = _header(first[1], self.how.columns, place)
        self._known(names, place)
        at = {name: k for k, name in enumerate(names) if name}
        free = [at[name] for name in FREE if name in at]
        rest = rows if headed else chain([first], rows)
        whole = _whole_rows(rest, delimiter, len(names), at["jobid"], free, self.account)
        for row, cells in whole:
            self.account.rows += 1
            if cells is None:
                self.account.drop("a row that cannot be read", f"{prefix}row {row}")
            elif "." in (job := cells[at["jobid"]]) and "[" not in job:
                self._step()
            else:
                yield from self.run({name: cells[k].strip() for name, k in at.items()}, row, prefix)

    def objects(self, data: bytes, place: str, prefix: str) -> Iterator[LogRun]:
        """Yield the runs in the output of ``sacct --json``, of any version of its data parser."""
        text = unpack(data, place)
        try:
            described = [_as_cells(job) for job in msgspec.json.decode(text)["jobs"]]
        except (KeyError, TypeError, AttributeError, ValueError, InputError) as error:
            found = f"{type(error).__name__}: {error}"
            raise InputError(place, found, "the output of sacct --json, whole") from None
        for k, (cells, steps) in enumerate(described):
            self.account.rows += 1 + steps
            self._step(steps)
            yield from self.run(cells, k, prefix, "jobs[{}]")

    def _step(self, count: int = 1) -> None:
        if count:
            self.account.folded[STEPS] += count

    def _known(self, names: Sequence[str], place: str) -> None:
        """Refuse a header without a column that is needed, and note columns that are not read."""
        known = set(names)
        needed = {
            "JobID": {"jobid"},
            "State": {"state"},
            "Submit": {"submit"},
            "AllocTRES or ReqTRES": {"alloctres", "reqtres", "allocgres", "reqgres"},
            "Start, or End and Elapsed": {"start", "end"},
            "End or Elapsed": {"end", "elapsed", "elapsedraw"},
        }
        if self.choice.device == "cpu":
            needed["AllocTRES or ReqTRES"] |= {"ncpus", "alloccpus", "reqcpus"}
        missing = [words for words, any_of in needed.items() if not any_of & known]
        if missing or len(known - {""}) < sum(name != "" for name in names):
            found = ", ".join(map(repr, names[:16]))
            expected = "; ".join(missing) or "each column once"
            raise InputError(f"{place}, header", found, f"also {expected}" if missing else expected)
        unread = (name for name in names if name and name not in READ)
        self.account.unread = tuple(dict.fromkeys((*self.account.unread, *unread)))

    def run(
        self, cells: dict[str, str], row: int, prefix: str, form: str = "row {}"
    ) -> Iterator[LogRun]:
        """Yield the run in a row, if there is one that is chosen; else count the row."""
        account, place = self.account, prefix + form.format(row)
        text = cells["jobid"]
        named = slurm_id(text)
        if named is None:
            account.drop("a row that cannot be read", f"{place}: the id {_shown(text)}")
            return
        if (cluster := cells.get("cluster", "")) != self.cluster:
            if self.cluster and cluster:
                found = f"jobs of two clusters, {_shown(self.cluster)} and {_shown(cluster)}"
                raise InputError(place, found, "those of one (sacct --clusters NAME)")
            self.cluster = cluster
        if self.choice.partitions and cells.get("partition", "") not in self.choice.partitions:
            account.drop("another partition", place)
            return
        if not self.choice.drawn(named.job):
            account.drop("a job that is not in the sample", place)
            return
        try:
            times = self._times(cells)
            lasts = {key: lasting(cells.get(key, "")) for key in ("elapsed", "suspended")}
            limits = (limit_s(cells.get(key, "")) for key in ("timelimitraw", "timelimit"))
            most_s = next((found_s for found_s in limits if not isnan(found_s)), nan)
            if raw := cells.get("elapsedraw"):
                lasts["elapsed"] = float(raw)
            if inf in lasts.values():
                raise ValueError("UNLIMITED")
            nodes = cells.get("nodelist", "")
            node_names(nodes)
            energy_j = float(cells.get("consumedenergyraw") or 0.0)
        except (ValueError, OverflowError, InputError) as error:
            account.drop("a cell that cannot be read", f"{place}: {_shown(str(error))}")
            return
        submit_s, eligible_s, start_s, end_s = times
        suspended_s = 0.0 if isnan(lasts["suspended"]) else lasts["suspended"]
        ran_s = lasts["elapsed"]
        if isnan(start_s) and "start" not in cells:
            start_s = end_s - ran_s - suspended_s
        state = cells["state"].partition(" ")[0]
        if isnan(end_s) and state not in ONGOING:
            end_s = start_s + ran_s + suspended_s
        lasted_s = end_s - start_s
        if isnan(ran_s):
            ran_s = lasted_s - suspended_s
        elif lasted_s > ran_s + max(1.0, 0.01 * lasted_s) and not suspended_s:
            suspended_s = lasted_s - ran_s  # Slurm's Elapsed leaves suspensions out
        run = LogRun(
            place=place,
            job=named.job,
            part=named.part,
            array=named.array,
            at_once=int(most) if (most := cells.get("at_once")) else None,
            state=state,
            submit_s=submit_s,
            eligible_s=eligible_s,
            start_s=start_s,
            end_s=end_s,
            ran_s=ran_s,
            suspended_s=suspended_s,
            limit_s=most_s,
            user=cells.get("user", ""),
            account=cells.get("account", ""),
            partition=cells.get("partition", ""),
            qos=cells.get("qos", ""),
            name=cells.get("jobname", ""),
            nodes="" if nodes in SILENT else nodes,
            features=_features(cells.get("constraints", "")),
            energy_j=energy_j if 0 < energy_j < inf else nan,  # 0 where nothing measures it
        )
        account.until_s = max(account.until_s, run.known_s)
        if why := self._unfit(run, cells, named.tasks):
            account.drop(why, place)
            return
        yield run

    def _times(self, cells: dict[str, str]) -> tuple[float, float, float, float]:
        """Return submission, eligibility, start and end, with hours that occur twice resolved."""
        named = ("submit", "eligible", "start", "end")
        told = [cells.get(name, "") for name in named]
        submit_s, eligible_s, start_s, end_s = (self.clock.first(text) for text in told)
        again = [self.clock.second(text) for text in told]
        if again[0] != submit_s or again[2] != start_s or again[3] != end_s:
            both = ((submit_s, again[0]), (start_s, again[2]), (end_s, again[3]))
            if not any(isnan(first) for first, _ in both):
                elapsed_s = lasting(cells.get("elapsed", ""))
                submit_s, start_s, end_s = settled(both, elapsed_s)
        return submit_s, eligible_s, start_s, end_s

    def _unfit(self, run: LogRun, cells: dict[str, str], listed: str | None) -> str | None:
        """Add devices and tasks to a run, and return why it is none that is chosen, if it is not.

        A later run of a job that was requeued is in the window if its first run is.
        """
        if isnan(run.submit_s):
            return "no time of submission"
        if not self.choice.within(run.submit_s) and run.job not in self.requeued:
            return "a submission outside the window"
        if run.state in REQUEUED:
            self.requeued.add(run.job)
        if listed is not None:
            waits = waiting_tasks(listed)
            if waits is None:
                return "a list of tasks that is cut off (SLURM_BITSTR_LEN)"
            run.tasks, most = waits
            run.at_once = most or run.at_once
        self._devices(run, cells)
        if run.gpus == 0:
            return "no GPUs" if self.choice.device == "gpu" else "no cores"
        if isnan(run.gpus):
            return "no number of GPUs"
        if run.gpus % 1:
            return "a part of a GPU"
        if run.start_s < run.submit_s - 1.0:
            return "a start before the submission"
        if run.end_s < run.start_s:
            return "an end before the start"
        if run.ran_s > run.end_s - run.start_s + max(1.0, 0.01 * run.ran_s):
            return "a run time longer than from start to end"
        if run.started and isnan(run.end_s) and run.state not in ONGOING:
            return "no run time"
        return None

    def _devices(self, run: LogRun, cells: dict[str, str]) -> None:
        """Add GPUs, cores, memory and nodes to a run: those that it held, or else asked for."""
        held, asked = tres(cells.get("alloctres", "")), tres(cells.get("reqtres", ""))
        cpus = held.cpus or asked.cpus
        for column in ("alloccpus", "ncpus", "reqcpus"):
            cpus = cpus or number(cells.get(column)) or 0.0
        nodes = held.nodes or asked.nodes
        for column in ("allocnodes", "nnodes"):
            nodes = nodes or int(number(cells.get(column)) or 0)
        memory = held.memory_gib or asked.memory_gib
        run.cpus, run.count = cpus, nodes
        memory = memory or memory_gib(cells.get("reqmem", ""), cpus, max(1, nodes)) or 0.0
        run.memory_gib = memory
        if self.choice.device == "cpu":
            run.gpus, run.kinds, run.asked = cpus, ("cpu",), ()
            return
        run.asked = asked.kinds if asked.gpus else None
        said = held if held.gpus else asked
        run.gpus, run.kinds = said.gpus, said.kinds
        for column in ("allocgres", "reqgres") if not run.gpus else ():
            each = gpus_of(cells.get(column))
            if not run.gpus and any(each.values()):
                run.gpus, run.kinds = sum(each.values()) * max(1, nodes), tuple(filter(None, each))


REQUEUED = ("REQUEUED", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REQUEUE_HOLD")
"""States of runs that another run may follow."""


def _features(text: str) -> tuple[str, ...]:
    """Return the labels of a constraint if all of them are needed, as in ``a100&nvlink``."""
    return tuple(text.split("&")) if re.fullmatch(r"[\w.:-]+(&[\w.:-]+)*", text) else ()


def _shown(text: str) -> str:
    return repr(printable(short(text, 60)))


def _header(line: str, columns: Sequence[str], place: str) -> tuple[list[str], str, bool]:
    """Return the columns in lower case, the delimiter, and whether the line is a header.

    With ``--parsable`` every line ends with the delimiter; the last column has no name then.
    """
    text = line.rstrip("\r\n")
    lower = text.lower().lstrip("\ufeff")
    names = [word.partition("%")[0] for word in re.split(r"[^\w%]+", lower)]
    if "jobid" in names and {*names} & {"state", "submit"}:
        between = re.match(r"[\w%]+([^\w%]+)", lower)
        delimiter = between[1] if between else "|"
        return [part.partition("%")[0].strip() for part in lower.split(delimiter)], delimiter, True
    if not columns:
        expected = "a header with JobID and others, or --columns as in sacct's --format"
        raise InputError(f"{place}, row 1", _shown(text), expected)
    listed = [name.partition("%")[0].strip().lower() for name in columns]
    for delimiter in dict.fromkeys("|,;\t^" + re.sub(r"[\w\s.:-]", "", text)):
        many = text.count(delimiter) - len(listed)
        if many in (-1, 0):
            return [*listed, *[""] * (many + 1)], delimiter, False
    found = f"{text.count('|') + 1} cells between '|'"
    raise InputError(f"{place}, row 1", found, f"the {len(listed)} of --columns")


def _whole_rows(
    lines: Iterator[tuple[int, str]],
    delimiter: str,
    width: int,
    id_at: int,
    free: Sequence[int],
    account: RowAccount,
) -> Iterator[tuple[int, list[str] | None]]:
    """Yield the cells of rows by their first line; None for lines that are no row.

    A row with too few cells goes on in the next line, unless that line is a row. Cells beyond the
    width belong to the only column with free text, if there is just one.
    """
    open_row, begun = 0, ""
    for row, line in lines:
        text = line.rstrip("\r\n")
        cells = text.split(delimiter)
        if begun:
            joined = f"{begun}\n{text}"
            if len(cells) < width and joined.count(delimiter) < width:
                if joined.count(delimiter) == width - 1:
                    account.told["names over several lines, put together"] += 1
                    yield open_row, joined.split(delimiter)
                    begun = ""
                else:
                    begun = joined
                continue
            yield open_row, None
            begun = ""
        if not text.strip():
            continue
        if len(cells) == width:
            yield row, cells
        elif len(cells) < width:
            open_row, begun = row, text
        elif len(free) == 1 and (mended := _mended(cells, width, id_at, free[0], delimiter)):
            account.told["names that hold the delimiter, put together"] += 1
            yield row, mended
        else:
            yield row, None
    if begun:
        yield open_row, None


def _mended(cells: list[str], width: int, id_at: int, at: int, delimiter: str) -> list[str] | None:
    """Return a row's cells with those beyond the width joined to the free text, if it has an id."""
    more = len(cells) - width
    row = [*cells[:at], delimiter.join(cells[at : at + more + 1]), *cells[at + more + 1 :]]
    return row if slurm_id(row[id_at].strip()) else None


def _as_cells(job: dict[str, Any]) -> tuple[dict[str, str], int]:
    """Return an object of ``sacct --json`` as the cells of a row, and how many steps it has.

    A number is plain in Slurm 22.05, and ``{"set", "infinite", "number"}`` since 23.02. The state
    is a text, and a list of texts since 23.11.
    """
    time, array, het = job["time"], job.get("array") or {}, job.get("het") or {}
    array_id, task, listed = array.get("job_id"), _plain(array.get("task_id")), array.get("task")
    text = str(job["job_id"])
    if array_id and task is not None:
        text = f"{array_id}_{task}"
    elif array_id and listed:
        text = f"{array_id}_[{listed}]"
    if het.get("job_id"):
        text = f"{het['job_id']}+{_plain(het.get('job_offset')) or 0}"
    most = array.get("limits", {}).get("max", {}).get("running", {}).get("tasks")
    state = job["state"]["current"]
    limit = time.get("limit")
    infinite = isinstance(limit, dict) and limit.get("infinite")
    cells = {
        "jobid": text,
        "state": state if isinstance(state, str) else state[0],
        "elapsedraw": str(_plain(time.get("elapsed")) or 0),
        "timelimit": "UNLIMITED" if infinite else str(_plain(limit) or ""),
        "suspended": _clocked(_plain(time.get("suspended")) or 0),
        "alloctres": _joined(job.get("tres", {}).get("allocated")),
        "reqtres": _joined(job.get("tres", {}).get("requested")),
        "nodelist": job.get("nodes") or "",
        "jobname": job.get("name") or "",
        "nnodes": str(_plain(job.get("allocation_nodes")) or ""),
        "at_once": str(_plain(most) or "") if array_id else "",
    }
    named = (("submit", "submission"), ("eligible",) * 2, ("start",) * 2, ("end",) * 2)
    cells |= {name: str(_plain(time.get(key)) or "") for name, key in named}
    for name in ("user", "account", "partition", "qos", "cluster", "constraints"):
        cells[name] = job.get(name) or ""
    return cells, len(job.get("steps") or ())


def _plain(value: object) -> int | None:
    found = number(value)
    return None if found is None else int(found)


def _clocked(seconds: float) -> str:
    return f"00:00:{seconds:02d}" if seconds < 60 else f"{seconds // 60}:{seconds % 60:02d}"


def _joined(entries: object) -> str:
    return ",".join(f"{of}={amount}" for of, amount in tres_entries(entries))
