"""The diagnosis of bad JSON files, which turns reader errors into place, found and expected.

It sees only refused files, so it need not be fast.
"""

import dataclasses
import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from ronda.instances.errors import InputError, printable, short
from ronda.instances.rules.problem import Problem, join, show

T = TypeVar("T")

_MESSAGE = re.compile(r"(?P<text>.*?)(?: - at `(?:key in )?(?P<path>\$.*)`)?", re.DOTALL)
_TOKEN = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_FIELD = re.compile(
    r"Object (?P<what>contains unknown|missing required) field `(?P<name>.*)`", re.DOTALL
)
_WORDS = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}


def mismatch(
    error: msgspec.ValidationError, document: Any, wanted: type, *, known_fields: bool = False
) -> Problem:
    """Explain from msgspec's error why a well-formed document is not of the wanted type.

    With `known_fields` the error for an unknown field lists all fields.
    """
    if "out of range" in str(error):
        for place, value in non_finite(document):  # 1e999, for which msgspec gives no exact place
            return Problem(place, show(value), "a finite number")
    match = _MESSAGE.fullmatch(str(error))
    text, path = (match["text"], match["path"]) if match else (str(error), None)
    tokens = [name or index for name, index in _TOKEN.findall(path or "")]
    place, value, expected_type = _walk(document, wanted, tokens)
    field = _FIELD.fullmatch(text)
    if field and field["what"].startswith("missing"):
        return Problem(place, f"no field {show(field['name'])}", "that field: it has no default")
    if field:
        known = list(_fields(_variant(expected_type, value)))
        hint = nearest(field["name"], known)
        hint += f" of {', '.join(known)}" if known_fields and hint.endswith("?") else ""
        return Problem(place, f"unknown field {show(field['name'])}", hint)
    return Problem(place, show(value), _expected(text, expected_type))


def record_of(fields: Mapping[str, Any], kind: type[T], place: str) -> T:
    """Return a record of plain fields, or raise an InputError that names the wrong field."""
    for at, value in non_finite(fields):
        raise InputError(f"{place}, field {at}", show(value), "a finite number")
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        problem = mismatch(error, fields, kind)
        at = f"{place}, field {problem.place}" if problem.place else place
        raise InputError(at, problem.found, problem.expected) from None


def syntax(data: bytes) -> Problem:
    """Explain why `data` is not a JSON document.

    NaN and Infinity, which some writers produce, are reported with their path.
    """
    if not data.strip():
        return Problem("", "an empty file", "a JSON document")
    try:
        text = data.decode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{data[error.start]:02x} (byte {error.start} of the file)"
        return Problem(f"line {line}", found, "JSON text in UTF-8")
    if data.startswith(b"\xef\xbb\xbf"):
        return Problem("line 1", "a byte order mark", "UTF-8 without one")
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        return _broken(text, error)
    except (RecursionError, ValueError) as error:
        return Problem("", str(error), "a document that can be held in memory")
    for place, value in non_finite(document):
        return Problem(place, show(value), "a finite number")
    return Problem("", "text that is no JSON", "a JSON document")


def _broken(text: str, error: json.JSONDecodeError) -> Problem:
    place = f"line {error.lineno} column {error.colno}"
    rest = text[error.pos :].strip()
    if not rest or error.msg.startswith("Unterminated string"):
        return Problem(place, "the end of the file", "more: the file is cut off; get it again")
    expected = _lower(error.msg).removeprefix("expecting ")
    if expected.startswith("invalid"):  # "invalid control character at", "invalid \\escape"
        expected = f"JSON text ({expected.removesuffix(' at')})"
    return Problem(place, show(rest.splitlines()[0], 40), expected)


def non_finite(value: Any) -> Iterator[tuple[str, float]]:
    """Yield the place and value of every NaN or infinity in a structure."""
    for place, _, leaf in _leaves(value):
        if isinstance(leaf, float) and not math.isfinite(leaf):
            yield place, leaf


def foreign(value: Any) -> Iterator[Problem]:
    """Yield a problem for every value in a structure that JSON cannot hold."""
    for place, owner, leaf in _leaves(value):
        if type(leaf) not in PLAIN and not isinstance(leaf, Enum):
            found, expected = f"an object of type {type(leaf).__qualname__}", "a plain Python value"
            if hasattr(leaf, "tolist"):  # numpy's
                found, expected = repr(leaf), f"{expected}: .item() or .tolist() of it"
            yield Problem(place + owner, short(printable(found), 60), expected)


PLAIN = (str, int, float, bool, type(None))


def _leaves(value: Any, place: str = "", owner: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield the place, the id of the owner, and the value of every leaf of a structure."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        owner = _owner(value) or owner
        for key, inner in value.items():
            yield from _leaves(inner, join(place, str(key)), owner)
    elif isinstance(value, list | tuple):
        for k, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{k}]", owner)
    else:
        yield place, owner, value


def nearest(word: str, known: list[str]) -> str:
    """Return the name nearest to an unknown one, or all names."""
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return f"{show(near[0])}?"
    return "one of " + ", ".join(known) if known else "no such field"


def _walk(value: Any, wanted: Any, tokens: list[str]) -> tuple[str, Any, Any]:
    """Follow msgspec's path and return the place in words, the value there and its type.

    The walk ends at an object with a duplicate field, as msgspec may have read the other value.
    """
    place, owner = "", _owner(value)
    for token in tokens:
        wanted = _variant(wanted, value)
        if not _has(value, token):
            break
        if token == "...":
            wanted = get_args(wanted)[1]
            token, value = _culprit(value, wanted)
            place = join(place, token)
        elif token.isdigit():
            k = int(token)
            wanted, value, place = _element(wanted, k), value[k], f"{place}[{token}]"
        else:
            tags = _tags(wanted)
            wanted = Literal[tags] if tags else _fields(wanted)[token]
            value, place = value[token], join(place, token)
        owner = _owner(value) or owner
    return place + owner, value, wanted


def _has(value: Any, token: str) -> bool:
    if token.isdigit():
        return isinstance(value, list) and int(token) < len(value)
    return isinstance(value, dict) and (token == "..." or token in value)


def _owner(value: Any) -> str:
    job = value.get("job", value) if isinstance(value, dict) else None
    name = job.get("id") if isinstance(job, dict) else getattr(job, "id", None)
    return f" (id {show(name)})" if isinstance(name, str) else ""


def _culprit(entries: dict[str, Any], wanted: Any) -> tuple[str, Any]:
    for key, value in entries.items():
        try:
            msgspec.convert(value, wanted)
        except msgspec.ValidationError:
            return key, value
    return "...", None


def _variant(wanted: Any, value: Any) -> Any:
    """Return a type without annotations and None, or the union member that `value` names."""
    if get_origin(wanted) is Annotated:
        return _variant(get_args(wanted)[0], value)
    if get_origin(wanted) not in (Union, UnionType):
        return wanted
    members = [m for m in get_args(wanted) if m is not NoneType]
    if len(members) == 1:
        return _variant(members[0], value)
    for member in members:
        config = getattr(member, "__struct_config__", None)
        if config and isinstance(value, dict) and value.get(config.tag_field) == config.tag:
            return member
        if isinstance(value, list) and get_origin(member) is tuple:
            return member
    return wanted


def _tags(wanted: Any) -> tuple[str, ...]:
    members = get_args(wanted) if get_origin(wanted) in (Union, UnionType) else ()
    return tuple(m.__struct_config__.tag for m in members if hasattr(m, "__struct_config__"))


def _fields(wanted: Any) -> dict[str, Any]:
    """Return the fields of a struct type or dataclass with their types, starting with its tag."""
    if dataclasses.is_dataclass(wanted):
        hints = get_type_hints(wanted, include_extras=True)
        return {field.name: hints[field.name] for field in dataclasses.fields(wanted)}
    if not (isinstance(wanted, type) and issubclass(wanted, msgspec.Struct)):
        return {}
    config, hints = wanted.__struct_config__, get_type_hints(wanted, include_extras=True)
    tag = {config.tag_field: Literal[config.tag]} if config.tag_field else {}
    return tag | {name: hints[name] for name in wanted.__struct_fields__}


def _element(wanted: Any, k: int) -> Any:
    fields = _fields(wanted)
    if fields:
        return list(fields.values())[k]
    members = get_args(wanted)
    return members[0] if members[-1] is Ellipsis else members[k]


def _expected(text: str, wanted: Any) -> str:
    wanted = _variant(wanted, None)
    if get_origin(wanted) is Literal:
        return "one of " + ", ".join(show(v) for v in get_args(wanted))
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return "one of " + ", ".join(show(v.value) for v in wanted)
    if text == "Number out of range":
        return "a finite number"
    head, _, _ = text.removeprefix("Expected ").partition(", got ")
    words = re.sub(
        r"`([\w| ]+)`", lambda m: " or ".join(_WORDS.get(w, w) for w in m[1].split(" | ")), head
    )
    return re.sub(r"(\d)\.0\b", r"\1", words)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
