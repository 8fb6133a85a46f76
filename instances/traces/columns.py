"""Rules for reading a table: lines as cells, columns as fields of jobs, rows as jobs."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec.structs import replace

from ronda.instances.base import Name, Positive, Record
from ronda.instances.errors import InputError
from ronda.instances.files.storage import label, read_bytes
from ronda.instances.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

UNITS = MappingProxyType({"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0})
"""Seconds per unit of numeric times."""

BLANKS = "blanks"
"""The separator of files without a header, whose columns are named 1, 2, 3 ..."""

SEPARATORS = MappingProxyType({BLANKS: None, "tab": "\t"})
"""Separators that have a name."""

SHARES = MappingProxyType({"gpu_milli": 1000})
"""Columns of public traces with the share of a GPU, and their value for a whole GPU."""


UNREADABLE = 0.01
"""The share of rows with unreadable cells above which a table or a log is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The format of a text file, which determines how its lines become cells.

    Attributes
    ----------
    separator
        Separator, a single character; None for any blanks.
    quotes
        Whether cells that contain a separator are quoted (RFC 4180).
    header
        Whether the first row holds the column names; otherwise columns are named 1, 2, 3 ...
    comment
        Prefix of comment lines, which stand before the first row or, with blanks as separators,
        anywhere.
    """

    separator: str | None = ","
    quotes: bool = True
    header: bool = True
    comment: str = "#"


CSV = Dialect()


class Columns(Record, frozen=True, kw_only=True, dict=True):
    """A mapping from fields of jobs to columns of a table, as stored in a JSON file.

    If several columns are given, as in A/B, the first one that the table has is used.

    Attributes
    ----------
    submit
        Column of the submission time.
    gpus
        Column of the total number of GPUs, also in Slurm's TRES format. A*B means the product of
        two columns.
    duration
        Column of the run time without queueing; `start` and `end` can be given instead. If both are
        given, they must agree.
    start, end
        Columns of the start and the end of the run.
    limit
        Column of the user's time limit, which becomes the estimate. It is a number or in Slurm's
        format (D-HH:MM:SS, MM:SS, UNLIMITED). Without this column, estimates are true run times.
    id
        Column of the id; the default id is the row number.
    user, name
        Columns of the user and of the job's name.
    vc
        Column of the virtual cluster, if nodes are given per virtual cluster.
    state
        Column of the job's final state.
    states
        First words of the states to keep, as in A/B; by default all.
    requested
        Column of the requested GPUs, which are used where `gpus` is unknown.
    share
        Column of the share of its GPUs that a job has.
    whole
        Value of `share` for a whole GPU; without `share`, value of `gpus` for one GPU.
    unknown
        Cells that mean an unknown value, as in A/B, in addition to empty ones (and NA, None,
        Unknown for numbers).
    optional
        Fields, as in A/B, whose columns are read if the table has them.
    unit
        Unit of numeric times: us, ms, s, min, h or d. Other times are dates.
    submit_unit, duration_unit, start_unit, end_unit, limit_unit
        Unit of a single column, if it differs.
    weight, preemptible
        Columns of the weight, and of whether the job may be stopped (yes or no); with --cluster.
    deadline, deadline_unit
        Column of the deadline, on the same clock as `submit`.
    min_gpus, max_gpus, gpu_types
        Columns of the fewest and most GPUs, and of the allowed GPU types, as in A/B; with
        --cluster.
    profile, work
        Columns of the name of the job's rates (by default its id), and of its work in the unit of
        the rates; with --cluster.
    zone
        Time zone of dates without one.
    since
        Date at which the trace's clock starts if its times are dates.
    separator
        Column separator: a character, ``tab``, or ``blanks`` for any blanks without a header.
    header
        ``none`` if there is no header. Columns are named 1, 2, 3 ... in that case.
    """

    submit: Name
    gpus: Name
    requested: Name | None = None
    share: Name | None = None
    whole: Positive = 1.0
    duration: Name | None = None
    start: Name | None = None
    end: Name | None = None
    limit: Name | None = None
    id: Name | None = None
    user: Name | None = None
    vc: Name | None = None
    name: Name | None = None
    state: Name | None = None
    weight: Name | None = None
    preemptible: Name | None = None
    deadline: Name | None = None
    deadline_unit: str | None = None
    min_gpus: Name | None = None
    max_gpus: Name | None = None
    gpu_types: Name | None = None
    profile: Name | None = None
    work: Name | None = None
    states: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    unit: str = "s"
    submit_unit: str | None = None
    duration_unit: str | None = None
    start_unit: str | None = None
    end_unit: str | None = None
    limit_unit: str | None = None
    zone: str = "UTC"
    since: date = date(1970, 1, 1)
    separator: Name = ","
    header: Literal["first", "none"] = "first"

    @cached_property
    def named(self) -> Mapping[str, str]:
        """The names of the table's columns, by field."""
        found = {field: getattr(self, field) for field in _NAMES}
        return {field: column for field, column in found.items() if column is not None}

    def seconds(self, field: str, values: "pd.Series[float]") -> "pd.Series[float]":
        """Return the numbers in a column of times converted from the column's unit to seconds."""
        unit_s = UNITS[getattr(self, f"{field}_unit") or self.unit]
        return values * unit_s if unit_s >= 1 else values / round(1 / unit_s)

    def within(self, headers: Collection[str]) -> "Columns":
        """Return the mapping with one existing column for each field that names several."""
        found = {}
        for field, told in self.named.items():
            known = [header for header in told.split("/") if header in headers]
            if known and told not in headers:
                found[field] = known[0]
        return replace(self, **found)

    def without(self, fields: Iterable[str]) -> "Columns":
        """Return the mapping without columns for the given optional fields."""
        gone = {name for f in {*fields} & {*self.optional} for name in (f, f"{f}_unit")}
        return replace(self, **dict.fromkeys(gone & {*self.__struct_fields__}))


class Dropped(Counter[str]):
    """The rows of a trace that did not become jobs, by reason, with one of each in `examples`."""

    def __init__(self) -> None:
        super().__init__()
        self.examples: dict[str, str] = {}

    def count(self, why: str, rows: "Sequence[int] | pd.Series[int]") -> None:
        """Count rows, given by their lines, under a reason."""
        if len(rows):
            self.examples.setdefault(why, f"row {next(iter(rows))}")
            self[why] += len(rows)

    def add(self, other: "Dropped") -> None:
        """Add the counts of another object."""
        self.update(other)
        self.examples = other.examples | self.examples

    def all_rows(self, place: str, expected: str = "at least one") -> InputError:
        """Return the error for a table without any row that can be a job."""
        told = (f"{n:,} with {why} ({self.examples[why]})" for why, n in self.most_common())
        found = f"no row that can be a job: {'; '.join(told) or 'no rows'}"
        return InputError(place, found, expected)

    def table(self) -> Table:
        """Return a table of how many rows were dropped and why."""
        rows = (
            {"rows dropped": f"{count:,}", "because of": why, "as in": self.examples[why]}
            for why, count in self.items()
        )
        return Table.of("", rows)


@dataclass(frozen=True, kw_only=True)
class Filters:
    """The filters that select which rows of a trace become jobs.

    Each reader documents the values that the literature uses. Times are on the trace's own clock.
    Time 0 of the instance is `start_s` or, if that is None, the first submission. Limits are
    inclusive, except for `end_s` and `max_gpu_hours`.

    Attributes
    ----------
    start_s
        Keep jobs submitted from this second of the trace's clock on.
    end_s
        Keep jobs submitted before this second of the trace's clock.
    min_duration_s
        Keep jobs that ran for at least this many seconds.
    max_duration_s
        Keep jobs that ran for at most this many seconds.
    max_gpu_hours
        Keep jobs that used less than this many GPU-hours.
    max_gpus
        Keep jobs that ask for at most this many GPUs.
    """

    start_s: float | None = None
    end_s: float | None = None
    min_duration_s: float = 0.0
    max_duration_s: float = float("inf")
    max_gpu_hours: float = float("inf")
    max_gpus: float = float("inf")


ALL = Filters()

OWN = (*("weight", "preemptible", "min_gpus", "max_gpus", "gpu_types", "profile", "work"),)
"""Fields that only tables with their own cluster have."""

TIMES = ("submit", "duration", "start", "end", "limit", "deadline")
NUMBERS = (*TIMES, "gpus", "requested", "share", "weight", "min_gpus", "max_gpus", "work")
"""Fields that are times, and all fields that are numbers."""

_NAMES = (
    *(*TIMES, "gpus", "requested", "share", "id", "user", "vc", "name", "state"),
    *OWN,
)

_HELIOS = Columns(
    submit="submit_s/submit_time",
    gpus="num_gpus/gpu_num/num_chips",
    duration="duration_s/duration",
    id="job_id",
    vc="vc/tenant",
    user="user",
    name="name/job_name/jobname",
    optional=("vc", "user", "name"),
    since=date(2020, 4, 1),
)

_CANONICAL = {"submit": "submit_s", "gpus": "num_gpus", "duration": "duration_s"}
_PHILLY = replace(_HELIOS, **_CANONICAL, vc="vc", name="name", since=date(2017, 9, 4))

NAMED = MappingProxyType(
    {
        "openb": Columns(
            submit="creation_time",
            gpus="num_gpu",
            share="gpu_milli",
            whole=SHARES["gpu_milli"],
            start="scheduled_time",
            end="deletion_time",
            id="name",
        ),
        "helios": _HELIOS,
        # the public slice of two virtual clusters, whose clock starts at 2020-09-01 00:00
        "helios-slice": replace(_HELIOS, submit="submit_time", submit_unit="us"),
        "philly": _PHILLY,
        "pai": replace(_PHILLY, since=date(1970, 1, 1)),
        "itp": Columns(
            submit="submit_s/submission_time",
            gpus="num_gpus/num_gpu",
            duration="duration_s/duration",
            deadline="deadline",
            id="job_id",
            vc="vc/cluster",
            user="user",
            name="name",
            optional=("deadline", "id", "user", "name"),
        ),
    }
)
"""Mappings by name."""


def columns_of(text: str) -> Columns:
    """Return a mapping from a ``.json`` file, from ``submit=...,gpus=...``, or by name.

    A name may be followed by changes, as in ``philly,zone=Europe/Berlin``. ``user=`` removes a
    column from the mapping.
    """
    if text.endswith(".json"):
        return _kept(text)
    parts = [part.strip() for part in text.split(",")]
    found: dict[str, Any] = {}
    if parts[0] in NAMED:
        found = msgspec.structs.asdict(NAMED[parts.pop(0)])
    told = set[str]()
    for part in parts:
        key, equals, value = (word.strip() for word in part.partition("="))
        if not equals or key not in Columns.__struct_fields__:
            raise InputError("--map", repr(part), f"{_FORMS}: {_FIELDS}")
        if key in told:
            raise InputError("--map", f"{key} twice", "each of them once")
        told.add(key)
        if not value and found.pop(key, None) is None:
            raise InputError("--map", repr(part), "a column, or nothing for one that it has")
        if not value:
            found.pop({"state": "states", "share": "whole"}.get(key, f"{key}_unit"), None)
        elif key in ("states", "unknown", "optional"):
            found[key] = value.split("/")
        elif key in ("gpus", "requested") and (scaled := re.fullmatch(_SCALED, value)):
            found[key], found["whole"] = scaled[1], _number(scaled[2])
        else:
            found[key] = _number(value) if key == "whole" else value
    found["optional"] = [field for field in found.get("optional", ()) if field not in told]
    try:
        return msgspec.convert(found, type=Columns)
    except msgspec.ValidationError as error:
        raise InputError("--map", str(error), _FORMS) from None


_SCALED = r"(.+\*.+)/([0-9.]+)"
"""A product of columns, and its value for one GPU."""

_FORMS = f"{', '.join(NAMED)}, a .json file, or submit=COLUMN,gpus=COLUMN,duration=COLUMN"
_FIELDS = "of " + ", ".join(Columns.__struct_fields__)


def _kept(text: str) -> Columns:
    given = read_bytes(Path(text))
    try:
        return msgspec.json.decode(given, type=Columns)
    except (msgspec.DecodeError, ValueError) as error:
        expected = f"a mapping, as --keep-map writes it, {_FIELDS}"
        raise InputError(label(text), str(error), expected) from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError("--map: whole", repr(text), "a number") from None


def checked(columns: Columns, *, by_name: bool, own: bool = False, sized: bool = True) -> None:
    """Refuse a mapping that contradicts itself or sets something that has no effect.

    `by_name` states that nodes are given per virtual cluster, `own` that the table has its own
    cluster, and `sized` that every job needs a run time or work.
    """

    def refuse(field: str, found: str, expected: str) -> None:
        raise InputError(f"--map: {field}", found, expected)

    if odd := set(columns.optional) - set(_NAMES) | {"submit", "gpus"} & set(columns.optional):
        refuse("optional", ", ".join(sorted(odd)), "fields of columns other than submit and gpus")
    for field in ("unit", *(f"{time}_unit" for time in TIMES)):
        if getattr(columns, field) not in {*UNITS, None if field != "unit" else "s"}:
            refuse(field, repr(getattr(columns, field)), f"one of {', '.join(UNITS)}")
    for time in TIMES:
        if getattr(columns, f"{time}_unit") and not getattr(columns, time):
            refuse(f"{time}_unit", "a unit of no column", f"{time}=COLUMN too")
    for field in OWN if not own else ():
        if (header := getattr(columns, field)) is not None:
            refuse(field, f"{header!r}, which does nothing", "--cluster FILE too")
    if own and columns.share is not None:
        refuse("share", f"{columns.share!r}", "whole GPUs with --cluster")
    timed = columns.duration is not None or (columns.start and columns.end)
    if sized and not timed and columns.work is None:
        or_work = ", or work=COLUMN" if own else ""
        refuse("duration", "no run time", f"duration=COLUMN, or start= and end=COLUMN{or_work}")
    if bool(columns.states) != (columns.state is not None):
        refuse("state", "one without the other", "state=COLUMN and states=A/B")
    if by_name != (columns.vc is not None):
        found = "no column" if by_name else f"{columns.vc!r}, which does nothing"
        refuse("vc", found, "vc=COLUMN and --nodes NAME=NUMBER,NAME=NUMBER, or neither")
    if not isfinite(columns.whole):
        refuse("whole", f"{columns.whole:g}", "a number above 0")
    if columns.separator not in SEPARATORS and len(columns.separator) > 1:
        names = " or ".join(SEPARATORS)
        refuse("separator", repr(columns.separator), f"a character, {names}")
    zone_of(columns)


def zone_of(columns: Columns) -> ZoneInfo:
    """Return the time zone of dates without one."""
    try:
        return ZoneInfo(columns.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError("--map: zone", repr(columns.zone), "as in Europe/Berlin") from error


def dialect_of(columns: Columns) -> Dialect:
    """Return the dialect of the table's file."""
    separator = SEPARATORS.get(columns.separator, columns.separator)
    if separator is None:
        return Dialect(separator=None, quotes=False, header=False, comment=";")
    named = columns.header == "first"
    return Dialect(separator=separator, header=named)
