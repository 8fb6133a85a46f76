"""Amounts as Slurm writes them: TRES and GRES lists, memory, times, numbers that may be unset."""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from math import isfinite

from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import CPU, MEMORY

NOTHING = {"", "(null)", "n/a", "none", "unknown", "unlimited", "infinite", "invalid", "not_set"}
"""The words, in lower case, that stand for no value."""

_UNITS = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}
_GIB = 2.0**30


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


def word(value: object) -> str:
    """Return a text without words for nothing; of a list, its first entry."""
    if isinstance(value, list):
        value = value[0] if value else ""
    text = str(value).strip() if isinstance(value, str | int) else ""
    return "" if text.lower() in NOTHING else text


def words(value: object) -> list[str]:
    """Return the entries of a list, or of a text with commas."""
    entries = value if isinstance(value, list) else str(value or "").split(",")
    return [text for entry in entries if (text := word(entry))]


def gib(text: str) -> float | None:
    """Return an amount of memory such as ``16000M`` in GiB; without a unit it is in MiB."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)[a-z]*", text.strip())
    return float(found[1]) * _UNITS[found[2] or "M"] / _GIB if found else None


def minutes(text: str) -> float | None:
    """Return a time such as ``1-00:30:00`` in minutes; None for no limit."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text.strip())
    if found is None:
        return None
    days, *rest = (int(part or 0) for part in found.groups())
    if found[1] is None and found[3] is None:
        return float(rest[0])
    if found[1] is None and found[4] is None:
        return rest[0] + rest[1] / 60  # mm:ss
    return days * 1440 + rest[0] * 60 + rest[1] + rest[2] / 60


def moment(text: str) -> float | None:
    """Return a local time such as ``2026-11-26T23:30:07`` in seconds since the epoch."""
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def gres(text: object) -> tuple[tuple[str, str | None, float], ...]:
    """Return name, type and count of each entry of a GRES list such as ``gpu:a100:2(IDX:0,3),nic``.

    Prefixes differ by version (``gres:gpu:2``, ``gres/gpu:2``, ``gres/gpu=2``).
    """
    return _gres(text) if text and isinstance(text, str) else ()


@lru_cache(maxsize=4096)
def _gres(text: str) -> tuple[tuple[str, str | None, float], ...]:
    found: list[tuple[str, str | None, float]] = []
    for entry in re.sub(r"\([^)]*\)", "", text).split(","):
        name, *rest = re.split(r"[:=]", re.sub(r"^gres[:/]", "", entry.strip()))
        count = 1.0
        if rest and (match := re.fullmatch(r"(\d{1,15})([KMGTP]?)", rest[-1])):
            count = float(match[1]) * (_UNITS[match[2]] if match[2] else 1.0)
            rest.pop()
        if name and name.lower() not in NOTHING:
            found.append((name, ":".join(rest) or None, count))
    return tuple(found)


def gpus_of(text: object) -> dict[str | None, float]:
    """Return the number of GPUs in a GRES list by type; None is the type that is not told."""
    found: dict[str | None, float] = {}
    for name, kind, count in gres(text):
        if name == "gpu":
            found[kind] = found.get(kind, 0.0) + count
    return found


def tres(text: object) -> dict[str, float]:
    """Return the amounts in a TRES list such as ``cpu=16,mem=8G,node=2,gres/gpu=4``, by resource.

    GPUs are ``gpus``, GPUs of a type have its name, and memory is in GiB. JSON lists of ``{type,
    name, count}``, with memory in MiB, are read as well.
    """
    found: dict[str, float] = {}
    for key, value in _pairs(text):
        amount = gib(value) if key == "mem" else number(value)
        if amount is None or amount < 0:
            continue
        kind = key.removeprefix("gres/")
        name = {"cpu": CPU, "mem": MEMORY, "gpu": GPUS, "gres/gpu": GPUS}.get(key, kind)
        found[name.removeprefix("gpu:") if key.startswith("gres/") else name] = amount
    return found


def _pairs(text: object) -> Iterator[tuple[str, str]]:
    if isinstance(text, list):
        for entry in text:
            if isinstance(entry, dict):
                kind, name = word(entry.get("type")), word(entry.get("name"))
                count = number(entry.get("count"))
                if kind and count is not None:
                    yield (f"{kind}/{name}" if name else kind), f"{count:.15g}"
        return
    for part in (text if isinstance(text, str) else "").split(","):
        key, _, value = part.partition("=")
        yield key.strip(), re.sub(r"\(.*", "", value.strip())
