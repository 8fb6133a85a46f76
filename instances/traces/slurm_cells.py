"""Slurm's words: ids, numbers, times, memory, TRES, GRES and lists of nodes, in text or JSON."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import product
from math import inf, isfinite, nan
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ronda.instances.errors import InputError
from ronda.instances.rules.problem import show
from ronda.instances.traces.hostlists import host_names

SILENT = frozenset({"", "Unknown", "None", "N/A", "NONE", "None assigned", "INVALID", "(null)"})
"""Cells that say nothing."""

NOTHING = {text.lower() for text in SILENT} | {"unlimited", "infinite", "not_set"}
"""The words, in lower case, that stand for no value."""

ONGOING = {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "STOPPED"}
ONGOING |= {"STAGE_OUT", "SIGNALING"}
"""States of jobs that hold nodes."""

_ID = re.compile(r"([0-9]+)(?:_(?:([0-9]+)|\[([^\]]*)\]?))?(?:\+([0-9]+))?(\..+)?")
_TASKS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([1-9][0-9]{0,8}))?)?")
_LASTS = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,7}):)?([0-9]{1,8}):([0-9]{2})(?:\.[0-9]+)?")
_DAYS = re.compile(r"([0-9]{1,6})-([0-9]{1,2})(?::([0-9]{2}))?")
_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]*)?)([KMGTP]?)([nc]?)")
_UNITS = {unit: 2.0 ** (10 * k) for k, unit in enumerate("KMGTP", 1)}
_SLICE = re.compile(r"[0-9]+g\.[0-9]+gb")
_HOURLY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}")


def number(value: object) -> float | None:
    """Return a number of JSON or text; None if it is unset, infinite, or no number.

    Slurm up to 22.05 writes plain numbers, and later ones ``{"set", "infinite", "number"}``.
    """
    if isinstance(value, dict):
        if value.get("infinite") is True or value.get("set") is False:
            return None
        value = value.get("number")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if isfinite(found) and abs(found) < 2.0**63 else None


class SlurmId(NamedTuple):
    """An id of Slurm, such as ``7``, ``7_2``, ``7_[2-3%2]``, ``12+1`` or ``7.batch``.

    `job` has no part of a heterogeneous job and no step in it. `tasks` has the text in brackets.
    """

    job: str
    array: str | None
    tasks: str | None
    part: int
    step: str | None


def slurm_id(text: str) -> SlurmId | None:
    """Return the parts of an id, or None if it is none."""
    found = _ID.fullmatch(text)
    if found is None:
        return None
    base, task, waiting, part, step = found.groups()
    job = base if task is None else f"{base}_{task}"
    array = base if (task is not None or waiting is not None) else None
    return SlurmId(job, array, waiting, int(part or 0), step)


def waiting_tasks(text: str) -> tuple[tuple[range, ...], int | None] | None:
    """Return the tasks in a text such as ``1,3,7-9%2``, and how many may run at once.

    The result is None if the text is cut off, as by SLURM_BITSTR_LEN, or is no list of tasks.
    """
    listed, _, most = text.partition("%")
    parts = [_TASKS.fullmatch(part) for part in listed.split(",")]
    ranges = tuple(range(int(p[1]), int(p[2] or p[1]) + 1, int(p[3] or 1)) for p in parts if p)
    if len(ranges) < len(parts) or not all(ranges) or (most and not most.isdecimal()):
        return None
    return ranges, int(most) if most else None


class LocalClock:
    """Dates in the time zone of a log, as seconds since 1970.

    A date in an hour that occurs twice has two values, the `first` and the `second`. A date in an
    hour that the zone does not have raises a ValueError, as does any other text.
    """

    def __init__(self, zone: ZoneInfo) -> None:
        self.zone = zone
        self._hours: dict[str, tuple[float, float]] = {}

    def first(self, text: str) -> float:
        """Return a date's earlier value, or NaN if the cell says nothing."""
        return self._value(text, 0)

    def second(self, text: str) -> float:
        """Return a date's later value, or NaN if the cell says nothing."""
        return self._value(text, 1)

    def _value(self, text: str, which: int) -> float:
        hour = text[:13]
        begins = self._hours.get(hour)
        if begins is None:
            if text in SILENT:
                return nan
            if not _HOURLY.fullmatch(hour):
                return float(int(text)) if text.isdecimal() else _with_offset(text)
            begins = self._hours[hour] = self._hour(hour)
        rest = text[13:]
        if len(rest) == 6 and rest[0] == rest[3] == ":":
            return begins[which] + int(rest[1:3]) * 60 + int(rest[4:])
        if len(rest) == 3 and rest[0] == ":":
            return begins[which] + int(rest[1:]) * 60
        return _with_offset(text)

    def _hour(self, hour: str) -> tuple[float, float]:
        begins = datetime.fromisoformat(f"{hour}:00:00")
        both = tuple(begins.replace(tzinfo=self.zone, fold=k).timestamp() for k in (0, 1))
        back = (datetime.fromtimestamp(s, UTC).astimezone(self.zone) for s in both)
        if not any(each.replace(tzinfo=None, fold=0) == begins for each in back):
            raise ValueError(f"{hour}: an hour that {self.zone.key} does not have")
        return both[0], both[1]


def _with_offset(text: str) -> float:
    """Return a date that says its offset from UTC."""
    date = datetime.fromisoformat(text)
    if date.tzinfo is None:
        raise ValueError(text)
    return (date - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)


def settled(ways: tuple[tuple[float, ...], ...], ran_s: float) -> tuple[float, ...]:
    """Return submission, start and end, one of two values each in an hour that occurs twice.

    They make the run as long as the log says or, failing that, put the start after the submission
    and the end after the start. The first value wins a tie.
    """

    def contradicts(way: tuple[float, ...]) -> tuple[bool, bool]:
        submit_s, start_s, end_s = way
        back = start_s < submit_s - 1.0 or end_s < max(start_s, submit_s - 1.0)
        return abs(end_s - start_s - ran_s) > max(1.0, 0.01 * ran_s), back

    return min(product(*ways), key=contradicts)


@lru_cache(maxsize=1 << 16)
def lasting(text: str) -> float:
    """Return a duration such as ``1-02:03:04``, ``90:00`` (minutes) or ``2-12`` in seconds.

    NaN means that the cell says nothing, infinity no limit. Other texts raise a ValueError.
    """
    if text in SILENT or text in ("Partition_Limit", "NOT_SET"):
        return nan
    if text == "UNLIMITED":
        return inf
    if found := _LASTS.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return ((days * 24.0 + hours) * 60 + minutes) * 60 + seconds
    if found := _DAYS.fullmatch(text):
        days, hours, minutes = (int(part or 0) for part in found.groups())
        return ((days * 24.0 + hours) * 60 + minutes) * 60
    raise ValueError(text)


def limit_s(text: str) -> float:
    """Return a time limit in seconds as `lasting` does; a bare number is minutes."""
    return float(text) * 60.0 if re.fullmatch(r"[0-9]{1,9}", text) else lasting(text)


@lru_cache(maxsize=1 << 12)
def memory_gib(text: str, cpus: float = 1.0, nodes: int = 1) -> float | None:
    """Return memory such as ``480G``, ``4000Mc`` (a core) or ``8Gn`` (a node) in GiB in all.

    Without a unit it is in MiB; None if it is no such text.

    Slurm 22.05 and before may add 2^31 to megabytes of each core (its flag MEM_PER_CPU).
    """
    found = _MEMORY.fullmatch(text.removesuffix("?"))
    if found is None:
        return None
    amount, unit, each = float(found[1]), found[2] or "M", found[3]
    if unit == "M" and amount >= 2**31:
        amount, each = amount - 2**31, "c"
    return amount * _UNITS[unit] / _UNITS["G"] * {"c": cpus, "n": nodes}.get(each, 1)


def tres_entries(told: object) -> Iterator[tuple[str, str]]:
    """Yield resources and amounts of TRES such as ``cpu=8,gres/gpu:a100=2``, or of a list in JSON.

    JSON has objects with ``type``, ``name`` and ``count``, of memory in MiB; others are refused
    with an InputError.
    """
    for part in told.split(",") if isinstance(told, str) else ():
        key, _, amount = part.partition("=")
        yield key.strip(), amount.partition("(")[0].strip()
    for entry in told if isinstance(told, list) else ():
        kind = entry.get("type") if isinstance(entry, dict) else None
        if not isinstance(kind, str):
            raise InputError("TRES", show(entry), "an object with a type and a count")
        if (count := number(entry.get("count"))) is not None:
            name = entry.get("name")
            yield f"{kind}/{name}" if name else kind, f"{count:.15g}"


class Tres(NamedTuple):
    """What Slurm's TRES say: GPUs, their types, cores, GiB of memory and nodes.

    `gpus` is NaN if the entries contradict each other or cannot be read; slices of a GPU (MIG,
    shards, MPS) count together as half a GPU.
    """

    gpus: float
    kinds: tuple[str, ...]
    cpus: float
    memory_gib: float
    nodes: int


@lru_cache(maxsize=1 << 16)
def tres(text: str) -> Tres:
    """Return TRES such as ``cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=60G,node=1``.

    The number of GPUs is the total ``gres/gpu`` if there is one, else the sum over types.
    """
    told: dict[str, str] = {}
    twice = False
    for key, amount in tres_entries(text):
        twice = twice or (key in told and key.startswith("gres/"))
        told[key] = amount
    generic = {
        key[5:]: int(amount) if re.fullmatch("[0-9]{1,9}", amount) else nan
        for key, amount in told.items()
        if re.fullmatch(r"gres/(gpu|shard|mps)(:.+)?", key)
    }
    cpus, nodes = (number(told.get(key)) or 0.0 for key in ("cpu", "node"))
    memory = memory_gib(told.get("mem", "0")) or 0.0
    typed = {key[4:]: n for key, n in generic.items() if key.startswith("gpu:")}
    gpus = generic.get("gpu", sum(typed.values()))
    if twice or gpus < sum(typed.values()) or any(n != n for n in generic.values()):
        return Tres(nan, (), cpus, memory, int(nodes))
    slices = sum(n for kind, n in typed.items() if _SLICE.search(kind))
    shared = slices + sum(n for key, n in generic.items() if not key.startswith("gpu"))
    gpus += (0.5 if shared else 0.0) - slices
    return Tres(gpus, tuple(typed), cpus, memory, int(nodes))


@lru_cache(maxsize=1 << 12)
def gres(text: str) -> tuple[tuple[str, str | None, float], ...]:
    """Return name, type and count of each entry of a GRES list such as ``gpu:a100:2(IDX:0,3),nic``.

    Prefixes differ by version (``gres:gpu:2``, ``gres/gpu:2``, ``gres/gpu=2``).
    """
    found: list[tuple[str, str | None, float]] = []
    for entry in re.sub(r"\([^)]*\)", "", text).split(","):
        name, *rest = re.split(r"[:=]", re.sub(r"^gres[:/]", "", entry.strip()))
        count = 1.0
        if rest and (match := re.fullmatch(r"(\d{1,15})([KMGTP]?)", rest[-1])):
            count = float(match[1]) * _UNITS.get(match[2], 1.0)
            rest.pop()
        if name and name.lower() not in NOTHING:
            found.append((name, ":".join(rest) or None, count))
    return tuple(found)


def gpus_of(text: object) -> dict[str | None, float]:
    """Return the number of GPUs in a GRES list by type; None is the type that is not told."""
    found: dict[str | None, float] = {}
    for name, kind, count in gres(text) if isinstance(text, str) else ():
        if name == "gpu":
            found[kind] = found.get(kind, 0.0) + count
    return found


@lru_cache(maxsize=1 << 16)
def node_names(text: str) -> tuple[str, ...]:
    """Return the names in a list of nodes such as ``n[1-3,07],gpu[01-02]-a``.

    Other texts, and lists of too many nodes, raise an InputError.
    """
    return () if text in SILENT else tuple(host_names(text, "NodeList"))
