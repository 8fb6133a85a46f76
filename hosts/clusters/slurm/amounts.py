"""Words and amounts of records of Slurm, in ronda's units."""

from datetime import datetime
from math import isfinite

from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import CPU, MEMORY
from ronda.instances.traces.slurm_cells import NOTHING, limit_s, memory_gib, number, tres_entries


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


def minutes(text: str) -> float | None:
    """Return a time such as ``1-00:30:00`` in minutes; None for no limit."""
    try:
        found = limit_s(text.strip()) / 60
    except ValueError:
        return None
    return found if isfinite(found) else None


def moment(text: str) -> float | None:
    """Return a local time such as ``2026-11-26T23:30:07`` in seconds since the epoch."""
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def tres(told: object) -> dict[str, float]:
    """Return the amounts in TRES, of text or JSON, by resource.

    GPUs are ``gpus``, GPUs of a type have its name, and memory is in GiB.
    """
    found: dict[str, float] = {}
    for key, value in tres_entries(told):
        amount = memory_gib(value) if key == "mem" else number(value)
        if amount is None or amount < 0:
            continue
        kind = key.removeprefix("gres/")
        name = {"cpu": CPU, "mem": MEMORY, "gpu": GPUS, "gres/gpu": GPUS}.get(key, kind)
        found[name.removeprefix("gpu:") if key.startswith("gres/") else name] = amount
    return found
