"""Host lists and task lists as Slurm writes them: ``r[1-2]n[01-04,7],login``, ``0-9:2``."""

import re
from collections.abc import Iterator
from itertools import product

from ronda.instances.errors import InputError
from ronda.instances.rules.problem import limits, show

_PART = re.compile(r"((?:[^\[\],]|\[[^\[\]]*\])+)(?:,|$)")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?(?::(\d{1,9}))?")


def host_names(text: str, place: str) -> list[str]:
    """Return the names in a host list, in its order.

    Brackets that do not match, and more names than nodes are allowed, raise an InputError.
    """
    names: list[str] = []
    text = text.strip()
    parts = _PART.findall(text) if _PART.sub("", text) == "" else [text]
    for part in parts:
        pieces = re.split(r"\[([^\[\]]*)\]", part)
        if any(mark in piece for piece in pieces[::2] for mark in "[],"):
            raise InputError(place, f"the host list {show(text)}", "one such as n[1-3,7]")
        inner = [list(numbers(piece, place)) for piece in pieces[1::2]]
        outer = pieces[::2]
        for chosen in product(*inner):
            ends = [*chosen, ""]
            names.append("".join(a + b for a, b in zip(outer, ends, strict=True)))
            if len(names) > limits().nodes:
                raise InputError(place, f"the host list {show(text)}", limits().at_most("nodes"))
    return names


def numbers(text: str, place: str, most: str = "nodes") -> Iterator[str]:
    """Yield the numbers of ranges such as ``1-3,07`` or ``0-8:4``, with the zeros they begin with.

    Other texts, and more numbers than the limit called `most` allows, raise an InputError.
    """
    left = getattr(limits(), most)
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        first, last = (found[1], found[2] or found[1]) if found else ("1", "0")
        step = int(found[3] or 1) if found else 0
        if found is None or int(last) < int(first) or step < 1:
            raise InputError(place, f"the range {show(part)}", "numbers such as 1-3")
        left -= (int(last) - int(first)) // step + 1
        if left < 0:
            raise InputError(place, f"the range {show(part)}", limits().at_most(most))
        for number in range(int(first), int(last) + 1, step):
            yield str(number).zfill(len(first) if first.startswith("0") else 1)
