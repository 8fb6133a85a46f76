"""One thing that is wrong with an object, and how many of them become one error."""

import json
from collections.abc import Sequence

from ronda.instances.errors import InputError

SHOWN = 8
"""How many problems one error message spells out."""


class Problem(str):
    """One thing that is wrong, as a line of text that keeps its parts.

    `place` is a path inside the object, such as ``jobs[3].gpus (id "a")``; "" for the whole.
    """

    __slots__ = ("expected", "found", "place")

    place: str
    found: str
    expected: str

    def __new__(cls, place: str, found: str, expected: str) -> "Problem":
        """Make the text ``place: found ..., expected ...``."""
        at = f"{place}: " if place else ""
        self = super().__new__(cls, f"{at}found {found}, expected {expected}")
        self.place, self.found, self.expected = place, found, expected
        return self


def as_error(whole: str, problems: Sequence[Problem]) -> InputError:
    """Return all problems of one object, called `whole`, as one error of one line."""
    first = problems[0]
    if len(problems) == 1:
        place = f"{whole}, {first.place}" if first.place else whole
        return InputError(place, first.found, first.expected)
    text = "; ".join(problems[:SHOWN])
    more = len(problems) - SHOWN
    rest = f"; and {more} more" if more > 0 else ""
    return InputError(whole, f"{len(problems)} problems: {text}{rest}", "none")


def show(value: object, limit: int = 60) -> str:
    """Return a value as it stands in a JSON file, in one line of at most `limit` characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError):  # keys that no file has, or a value inside itself
        value = repr(value)
        text = json.dumps(value, ensure_ascii=False)
    if not text.isprintable():
        text = json.dumps(value, default=repr)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_of(names: Sequence[str], limit: int = 8) -> str:
    """Return ``one of a, b, c``, cut after `limit` names."""
    if not names:
        return "none (there are no such entries)"
    shown = ", ".join(show(n) for n in names[:limit])
    more = f", … ({len(names)} in all)" if len(names) > limit else ""
    return f"one of {shown}{more}" if len(names) > 1 else shown
