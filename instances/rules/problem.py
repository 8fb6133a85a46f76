"""One thing that is wrong with an object, and how many of them become one error."""

import difflib
import json
from collections.abc import Collection, Sequence

from ronda.instances.errors import InputError

SHOWN = 8
"""How many problems or words one error message spells out."""


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


def one_of(names: Collection[str], word: str | None = None) -> str:
    """Return ``one of a, b, c``: the first names, or all in order and the one like a `word`."""
    if not names:
        return "none (there are no such entries)"
    listed = list(names) if word is None else sorted(names)
    most = len(listed) if word is not None else SHOWN
    shown = ", ".join(show(n) for n in listed[:most])
    more = f", … ({len(listed)} in all)" if len(listed) > most else ""
    near = [] if word is None else difflib.get_close_matches(word, listed, n=1)
    hint = "".join(f" (did you mean {show(name)}?)" for name in near)
    return f"one of {shown}{more}{hint}" if len(listed) > 1 else f"{shown}{hint}"
