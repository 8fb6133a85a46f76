"""Cells of Slurm's accounting: ids, times in a zone, durations, memory, TRES and lists of nodes."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import product
from math import inf, nan
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ronda.instances.traces.hostlists import host_names
from ronda.instances.traces.text import number

SILENT = frozenset({"", "Unknown", "None", "N/A", "NONE", "None assigned", "INVALID", "(null)"})
"""Cells that say nothing."""

_ID = re.compile(r"([0-9]+)(?:_(?:([0-9]+)|\[([^\]]*)\]?))?(?:\+([0-9]+))?(\..+)?")
_TASKS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([1-9][0-9]{0,8}))?)?")
_LASTS = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,7}):)?([0-9]{1,8}):([0-9]{2})(?:\.[0-9]+)?")
_DAYS = re.compile(r"([0-9]{1,6})-([0-9]{1,2})(?::([0-9]{2}))?")
_MEMORY = re.compile(r"([0-9.]+)([KMGTP]?)([nc]?)")
_GIB = {"K": 2.0**-20, "M": 2.0**-10, "": 2.0**-10, "G": 1.0, "T": 2.0**10, "P": 2.0**20}
_SLICE = re.compile(r"[0-9]+g\.[0-9]+gb")
_HOURLY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}")


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


def settled(
    ways: tuple[tuple[float, ...], ...], ran_s: float, near_s: float = 1.0
) -> tuple[float, ...]:
    """Return submission, start and end, one of two values each in an hour that occurs twice.

    They make the run as long as the log says or, failing that, put the start after the submission
    and the end after the start. The first value wins a tie.
    """

    def contradicts(way: tuple[float, ...]) -> tuple[bool, bool]:
        submit_s, start_s, end_s = way
        back = start_s < submit_s - near_s or end_s < max(start_s, submit_s - near_s)
        return abs(end_s - start_s - ran_s) > max(near_s, 0.01 * ran_s), back

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


@lru_cache(maxsize=1 << 12)
def memory_gib(text: str, cpus: float = 1.0, nodes: int = 1) -> float:
    """Return memory such as ``480G``, ``4000Mc`` (a core) or ``8Gn`` (a node) in GiB in all.

    Slurm 22.05 and before may add 2^31 to megabytes of each core (its flag MEM_PER_CPU).
    """
    found = _MEMORY.fullmatch(text.removesuffix("?"))
    amount = number(found[1]) if found else nan
    if found is None or amount != amount:
        return 0.0
    each = found[3]
    if found[2] in ("M", "") and amount >= 2**31:
        amount, each = amount - 2**31, "c"
    return amount * _GIB[found[2]] * {"c": cpus, "n": nodes}.get(each, 1)


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
    for part in text.split(","):
        key, _, amount = part.strip().partition("=")
        twice = twice or (key in told and key.startswith("gres/"))
        told[key] = amount
    generic = {
        key[5:]: int(amount) if re.fullmatch("[0-9]{1,9}", amount) else nan
        for key, amount in told.items()
        if re.fullmatch(r"gres/(gpu|shard|mps)(:.+)?", key)
    }
    cpus, nodes = number(told.get("cpu", "0")), number(told.get("node", "0"))
    memory = memory_gib(told.get("mem", "0"))
    if twice or any(amount != amount for amount in generic.values()):
        return Tres(nan, (), cpus, memory, int(nodes))
    typed = {key[4:]: n for key, n in generic.items() if key.startswith("gpu:")}
    gpus = generic.get("gpu", sum(typed.values()))
    if gpus < sum(typed.values()):
        return Tres(nan, (), cpus, memory, int(nodes))
    slices = sum(n for kind, n in typed.items() if _SLICE.search(kind))
    shared = slices + sum(n for key, n in generic.items() if not key.startswith("gpu"))
    gpus += (0.5 if shared else 0.0) - slices
    return Tres(gpus, tuple(typed), cpus, memory, int(nodes))


@lru_cache(maxsize=1 << 12)
def gres(text: str) -> tuple[float, tuple[str, ...]]:
    """Return the GPUs of each node, and their types, in older GRES such as ``gpu:a100:2``."""
    count, kinds = 0.0, dict[str, None]()
    for part in text.split(","):
        name, *rest = part.partition("(")[0].removeprefix("gres:").strip().split(":")
        if name == "gpu":
            many = rest[-1] if rest and rest[-1].isdecimal() else "1"
            kinds |= dict.fromkeys(each for each in rest[:1] if not each.isdecimal())
            count += int(many)
    return count, tuple(kinds)


@lru_cache(maxsize=1 << 16)
def node_names(text: str) -> tuple[str, ...]:
    """Return the names in a list of nodes such as ``n[1-3,07],gpu[01-02]-a``.

    Raises
    ------
    InputError
        If it is no such list, or names too many nodes.
    """
    return () if text in SILENT else tuple(host_names(text, "NodeList"))
