"""Files of one JSON record a line, to which a run that was killed may have written half a line."""

from pathlib import Path
from typing import TypeVar

import msgspec

from ronda.instances.errors import InputError
from ronda.instances.files.storage import load

Record = TypeVar("Record")


def read_records(path: Path, kind: type[Record], expected: str) -> list[Record]:
    """Return the lines of a file that are whole; none if there is no file.

    Parameters
    ----------
    path
        The file.
    kind, expected
        What each line holds, and that in words.

    Raises
    ------
    InputError
        If a whole line is something else.
    """
    data = load(path) if path.exists() else b""
    records = []
    for number, text in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            records.append(msgspec.json.decode(text, type=kind))
        except msgspec.DecodeError as error:
            raise InputError(f"{path} line {number}", str(error), expected) from None
    return records
