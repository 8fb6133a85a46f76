"""Problems of an object, the error that names them, and size limits.

Sizes beyond the limits are taken to be a mistake or an attack. The environment variable
`RONDA_LIMITS` changes the limits, as in ``RONDA_LIMITS=mib=2048,gpus=10000000``.
"""

import difflib
import json
import os
import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from ronda.instances.errors import InputError

SHOWN = 8
"""The most problems or names that one error message lists."""


class Problem(str):
    """A problem of an object: a line of text that also keeps its parts.

    `place` is a path inside the object, such as ``jobs[3].gpus (id "a")``, or "" for the object.
    """

    __slots__ = ("expected", "found", "place")

    place: str
    found: str
    expected: str

    def __new__(cls, place: str, found: str, expected: str) -> "Problem":
        """Make the problem with the text ``place: found ..., expected ...``."""
        at = f"{place}: " if place else ""
        self = super().__new__(cls, f"{at}found {found}, expected {expected}")
        self.place, self.found, self.expected = place, found, expected
        return self


def as_error(whole: str, problems: Sequence[Problem]) -> InputError:
    """Return all problems of an object as a one-line error, which calls the object `whole`."""
    first = problems[0]
    if len(problems) == 1:
        place = f"{whole}, {first.place}" if first.place else whole
        return InputError(place, first.found, first.expected)
    text = "; ".join(problems[:SHOWN])
    more = len(problems) - SHOWN
    rest = f"; and {more} more" if more > 0 else ""
    return InputError(whole, f"{len(problems)} problems: {text}{rest}", "none")


def join(place: str, key: str) -> str:
    """Return the place of a field or entry below `place`."""
    if not re.fullmatch(r"[\w+-]+", key):
        return f"{place}[{show(key)}]"
    return f"{place}.{key}" if place else key


def show(value: object, limit: int = 60) -> str:
    """Return the JSON text of a value on one line of at most `limit` characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError):  # impossible keys, or a value inside itself
        value = repr(value)
        text = json.dumps(value, ensure_ascii=False)
    if not text.isprintable():
        text = json.dumps(value, default=repr)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_of(names: Collection[str], word: str | None = None) -> str:
    """Return the phrase ``one of a, b, c`` with the first names.

    With a `word` the phrase lists all names in order, and the name nearest to the word.
    """
    if not names:
        return "none (there are no such entries)"
    listed = list(names) if word is None else sorted(names)
    most = len(listed) if word is not None else SHOWN
    shown = ", ".join(show(n) for n in listed[:most])
    more = f", … ({len(listed)} in all)" if len(listed) > most else ""
    near = [] if word is None else difflib.get_close_matches(word, listed, n=1)
    hint = "".join(f" (did you mean {show(name)}?)" for name in near)
    return f"one of {shown}{more}{hint}" if len(listed) > 1 else f"{shown}{hint}"


VARIABLE = "RONDA_LIMITS"
"""The environment variable that sets limits."""

DEPTH = 64
"""The deepest nesting of brackets in free fields: ``made``, ``memory``, ``config``."""


class SizeLimits(NamedTuple):
    """The limits of a file in MiB, uncompressed, and of nodes, GPUs, jobs and tasks."""

    mib: int = 256
    nodes: int = 2**18
    gpus: int = 2**21
    jobs: int = 2**20
    tasks: int = 2**24

    def at_most(self, name: str) -> str:
        """Return the limit in words, with a hint on how to raise it."""
        unit = " MiB" if name == "mib" else ""
        return f"at most {getattr(self, name)}{unit} ({VARIABLE}={name}=NUMBER allows more)"


def limits() -> SizeLimits:
    """Return the limits in force."""
    return _read(os.environ.get(VARIABLE, ""))


def too_many(place: str, name: str, number: int) -> list[Problem]:
    """Return the problem if a number of nodes, GPUs, jobs or tasks is above the limit."""
    if number <= getattr(limits(), name):
        return []
    return [Problem(place, f"{number} {name.replace('gpus', 'GPUs')}", limits().at_most(name))]


def depth(value: object) -> int:
    """Return the nesting depth of brackets in plain JSON values."""
    levels, inside = 0, [value]
    while inside := [v for v in inside if isinstance(v, dict | list | tuple)]:
        levels += 1
        inside = [x for v in inside for x in (v.values() if isinstance(v, dict) else v)]
    return levels


@lru_cache(maxsize=8)
def _read(text: str) -> SizeLimits:
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition("=")
        good = name in SizeLimits._fields and number.isascii() and number.isdigit()
        if not good or not 0 < int(number[:20]) < 10**18:
            expected = ", ".join(f"{name}=NUMBER" for name in SizeLimits._fields)
            raise InputError(VARIABLE, show(part), f"some of {expected}")
        found[name] = int(number)
    return SizeLimits(**found)
