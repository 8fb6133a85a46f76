"""Parts of pages that commands write: the text between two marks.

A part begins with ``<!-- NAME: who makes it -->`` on a line of its own, or without who, and ends
with ``<!-- end of NAME -->``.
"""

import re
from pathlib import Path

from ronda.instances.errors import InputError
from ronda.instances.files.storage import label, read_bytes, write_bytes


def fill(page: str, name: str, text: str, place: str = "page") -> str:
    """Return a page with the text between the two marks of a name replaced.

    InputError tells, naming the `place`, that there are no such marks, or more than two.
    """
    begin, end = (
        rf"<!-- {re.escape(name)}(?:: [^\n]*)? -->\n",
        rf"<!-- end of {re.escape(name)} -->",
    )
    pattern = re.compile(f"({begin}).*?({end})", re.DOTALL)
    filled, count = pattern.subn(lambda found: found[1] + text + found[2], page)
    if count != 1:
        wanted = f"the marks <!-- {name} --> and <!-- end of {name} -->, each on one line"
        raise InputError(place, f"{count} places for {name}", f"one, between {wanted}")
    return filled


def fill_file(path: Path, name: str, text: str | None = None) -> None:
    """Write a text between the marks of a page on the disk; without one only look for the marks."""
    filled = fill(read_bytes(path).decode("utf-8"), name, text or "", label(path))
    if text is not None:
        write_bytes(path, filled.encode())
