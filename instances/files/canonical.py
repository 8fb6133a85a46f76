"""The canonical bytes of an object, which are equal for equal objects."""

from enum import Enum
from functools import cache
from typing import Any, Literal

import msgspec

_PLAIN = (str, int, bool, type(None))


def encode(obj: msgspec.Struct, order: Literal["sorted"] | None = None) -> bytes:
    """Return the compact JSON of an object whose float fields hold only floats.

    ``format`` comes first, and every other field with its default value is left out. (msgspec
    itself leaves out only defaults that were not set explicitly.) Sorted bytes do not depend on the
    order of fields and mapping entries.
    """
    plain = _plain(obj)
    head = {"format": obj.format} if "format" in obj.__struct_fields__ else {}  # type: ignore[attr-defined]
    return msgspec.json.encode(head | plain, order=order)


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    made = (
        (f.name, f.default if f.default_factory is msgspec.NODEFAULT else f.default_factory())
        for f in msgspec.structs.fields(kind)
    )
    return tuple(made)


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return value + 0.0  # -0.0 equals 0.0 and must be written like it
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return [_plain(v) for v in value]
    if kind is dict:
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, msgspec.Struct):
        return _record(value)
    return value


def _record(value: msgspec.Struct) -> Any:
    """Return a struct as an object without defaults or, if it is written as an array, in full."""
    kind = type(value)
    config = kind.__struct_config__
    if config.array_like:
        return [_plain(getattr(value, name)) for name, _ in _fields(kind)]
    out = {config.tag_field: config.tag} if config.tag_field else {}
    for name, default in _fields(kind):
        inner = getattr(value, name)
        if inner is not default and inner != default:
            out[name] = _plain(inner)
    return out
