"""Parts of the page: its own files and those of its libraries, and data as short text."""

import gzip
from base64 import b64encode
from collections.abc import Iterable
from importlib import resources
from typing import Any

import msgspec
import numpy as np


def part(file: str) -> str:
    """Return the text of one of the page's own files."""
    return text("ronda.bench", f"data/report/{file}")


def text(package: str, file: str) -> str:
    """Return the text of a file of a package."""
    return resources.files(package).joinpath(file).read_text("utf-8")


def packed(value: Any) -> str:
    """Return a text, or a value that JSON can represent, as compressed Base64."""
    data = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    return b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")


def ticks(times: Iterable[float], tick: float) -> dict[str, Any]:
    """Return times as whole numbers of ticks; each is the difference from the previous one."""
    whole = np.rint(np.fromiter(times, dtype=float) / tick).astype(int)
    return {"tick": tick, "by": np.diff(whole, prepend=0).tolist()}


def coded(words: Iterable[str]) -> dict[str, Any]:
    """Return the distinct words, and an index into them for each word."""
    every = list(words)
    known = {word: k for k, word in enumerate(dict.fromkeys(every))}
    return {"words": list(known), "at": [known[word] for word in every]}


def fine(value: float | None, digits: int = 8) -> float | None:
    """Return a number with `digits` significant digits; None if it is missing or not finite."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.{digits}g}")


def floats(values: Iterable[float | None]) -> list[float | None]:
    """Return numbers rounded to five significant digits."""
    return [fine(value, 5) for value in values]
