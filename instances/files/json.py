"""Read and write instances, rounds, plans, schedules and demand series as JSON files.

The ``"format"`` field identifies the kind of a file. ``docs/formats.md`` is the specification.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ronda.instances.arguments import checked
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.files import canonical, storage
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.diagnose import mismatch, syntax
from ronda.instances.rules.problem import Problem, as_error, show
from ronda.instances.rules.validate import (
    Document,
    MalformedError,
    consistent,
    exact,
    name_of,
)
from ronda.instances.schedule import Schedule

T = TypeVar("T")

KINDS: dict[str, type[Document]] = {
    "ronda/instance/2": Instance,
    "ronda/round/2": Round,
    "ronda/plan/1": Plan,
    "ronda/schedule/1": Schedule,
    "ronda/demand/1": Demand,
}
"""The type of each format."""

OLDER: dict[str, type[Document]] = {"ronda/instance/1": Instance, "ronda/round/1": Round}
"""The type of each earlier format, which is read as well."""

INDENT_BELOW = 1 << 20
"""The size in bytes below which uncompressed files are indented for readability."""


class _Head(msgspec.Struct):
    """The ``"format"`` field of a document, which identifies its kind."""

    format: Any = msgspec.UNSET


@checked
def read(path: str | Path) -> Document:
    """Read a file of any kind.

    Gzip and Zstandard compression are recognised by the first bytes, not by the name. ``-`` means
    standard input.

    Raises
    ------
    InputError
        If the file cannot be read, or anything in it is unknown, missing or inconsistent.
    """
    if str(path) == "-":
        return decode(storage.standard_input(), "standard input")
    return decode(storage.read_bytes(Path(path)), storage.label(path))


def decode(data: bytes, place: str) -> Document:
    """Read a document from plain or compressed bytes like `read`; errors call it `place`."""
    return consistent(parse(storage.unpack(data, place), place, KINDS | OLDER), place)


def read_part(path: str | Path, kind: type[T]) -> T:
    """Read a part of a document, such as a `Cluster`, from a file of its own."""
    place = storage.label(path)
    return parse(storage.unpack(storage.read_bytes(Path(path)), place), place, kind)


def parse(text: bytes, place: str, kinds: Mapping[str, type[T]] | type[T]) -> T:
    """Return the object in a JSON text, of a given type or the type that its ``"format"`` names.

    Raises
    ------
    InputError
        If anything in it is unknown, missing, repeated or of a wrong type.
    """
    try:
        kind = kinds if isinstance(kinds, type) else _kind(text, place, kinds)
        try:
            obj = msgspec.json.decode(text, type=kind)
        except msgspec.ValidationError as error:
            _refuse_repeated_fields(text)  # the error may concern the field that other readers drop
            try:
                problem = mismatch(error, json.loads(text), kind)
            except ValueError:
                problem = syntax(text)
            raise MalformedError(problem) from None
        _refuse_repeated_fields(text)
    except (msgspec.DecodeError, ValueError):
        raise as_error(place, [syntax(text)]) from None
    except RecursionError:
        raise InputError(
            place, "brackets nested too deeply", "at most some hundred levels"
        ) from None
    except MalformedError as error:
        raise as_error(place, [error.problem]) from None
    return obj


@checked
def write(obj: Document, path: str | Path) -> None:
    """Write an object in one atomic step; equal objects give equal bytes.

    The suffix (``.json``, ``.json.gz`` or ``.json.zst``) selects the compression. An existing file
    is replaced.

    Raises
    ------
    InputError
        If the object is not valid or the file cannot be written.
    """
    place = storage.label(path)
    pack = storage.packer(Path(path))
    plain = exact(obj, f"{place}, {name_of(obj)}")
    consistent(plain, f"{place}, {name_of(obj)}")
    text = canonical.encode(plain)
    if pack is storage.as_it_is and len(text) < INDENT_BELOW:
        text = msgspec.json.format(text, indent=2)
    storage.write_bytes(Path(path), pack(text + b"\n"))


def fingerprint(obj: Document) -> str:
    """Return 16 hexadecimal digits that identify an object.

    They are the first digits of the SHA-256 of the canonical JSON with sorted keys, in the first
    version of the format that can be read, so that equal contents have equal digits. A wrong type
    or number in the object raises an `InputError`.
    """
    plain = exact(obj)
    first = f"{plain.format.rpartition('/')[0]}/1"
    text = canonical.encode(msgspec.structs.replace(plain, format=first), order="sorted")
    return hashlib.sha256(text).hexdigest()[:16]


def _kind(text: bytes, place: str, kinds: Mapping[str, type[T]]) -> type[T]:
    try:
        found = msgspec.json.decode(text, type=_Head).format
    except msgspec.ValidationError:
        try:
            value = msgspec.json.decode(text)
        except msgspec.ValidationError:  # a number beyond all bounds, somewhere in the text
            raise MalformedError(syntax(text)) from None
        raise InputError(place, show(value, 40), "a JSON object with a field format") from None
    known = "one of " + ", ".join(kinds)
    if found is msgspec.UNSET:
        raise InputError(place, "no field format", f"that field: {known}")
    if not isinstance(found, str) or found not in kinds:
        newer = isinstance(found, str) and found.rpartition("/")[0] in {
            f.rpartition("/")[0] for f in kinds
        }
        remedy = " (a newer ronda may read it)" if newer else ""
        raise InputError(f"{place}, format", show(found), known + remedy)
    return kinds[found]


def _refuse_repeated_fields(text: bytes) -> None:
    """Refuse ``{"gpus": 1, "gpus": 2}``, of which JSON readers silently drop one field."""

    def look(pairs: list[tuple[str, Any]]) -> None:
        names = dict(pairs)
        if len(names) < len(pairs):
            twice = next(n for n in names if sum(n == other for other, _ in pairs) > 1)
            words = ", ".join(f"{show(k)}: {show(v, 20)}" for k, v in pairs if v is not None)
            found = f"{show(twice)} twice in the object {{{words[:100]}}}"
            raise MalformedError(Problem("", found, "each field once"))

    json.loads(text, object_pairs_hook=look)
