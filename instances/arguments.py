"""Check the arguments of public functions against their annotations before any work."""

import inspect
import json
import re
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cache, wraps
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
import numpy as np

from ronda.instances.errors import InputError, printable, short

P = ParamSpec("P")
R = TypeVar("R")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function raise an `InputError` for arguments that its annotations forbid.

    Numbers must be finite and within the bounds of an ``Annotated`` type. NumPy scalars and arrays
    become plain numbers and lists. Arguments annotated with a protocol, `object` or `Any` are not
    checked. A string in an ``Annotated`` type describes the expected value.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        given, hints = signature.bind(*args, **kwargs), _hints(function)
        for name, value in given.arguments.items():
            hint = hints.get(name, object)
            if signature.parameters[name].kind in _STARRED or _is_open(hint):
                continue
            plain = _plain(value)
            refuse_unfit(name, plain, hint)
            given.arguments[name] = plain
        return function(*given.args, **given.kwargs)

    return asked


def _plain(value: Any) -> Any:
    """Return a value with plain numbers and lists in place of NumPy scalars and arrays."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return {key: _plain(v) for key, v in value.items()} if type(value) is dict else value


def refuse_unfit(place: str, value: Any, hint: Any) -> None:
    """Raise an `InputError` if an annotation forbids a value."""
    if not _fits(value, hint):
        raise InputError(place, _found(value), _words(hint))


_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(function, include_extras=True)


def _is_open(hint: Any) -> bool:
    """Return whether a hint is `object`, `Any` or a protocol, which allow anything."""
    if get_origin(hint) in (Union, UnionType):
        return any(map(_is_open, get_args(hint)))
    return hint in (object, Any) or getattr(hint, "_is_protocol", False)


def _fits(value: Any, hint: Any) -> bool:
    kind, inner = get_origin(hint), get_args(hint)
    if isinstance(value, np.generic):
        value = value.item()
    if kind is Annotated:
        return _fits(value, inner[0]) and all(_within(value, bound) for bound in inner[1:])
    if kind in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if kind is Literal:
        return isinstance(value, str) and value in inner
    if kind is not None and not isinstance(value, kind):
        return False
    if kind is tuple:
        return len(value) == len(inner) and all(map(_fits, value, inner))
    if kind is not None and issubclass(kind, Mapping):
        return all(_fits(key, inner[0]) and _fits(each, inner[1]) for key, each in value.items())
    if kind is not None and issubclass(kind, Collection):
        return not isinstance(value, str | bytes) and all(_fits(each, inner[0]) for each in value)
    if kind is not None or _is_open(hint) or not isinstance(hint, type):
        return True
    if hint in (int, float):
        is_number = isinstance(value, int | hint) and not isinstance(value, bool)
        return is_number and abs(value) <= sys.float_info.max
    return isinstance(value, hint)


def _within(value: Any, bound: Any) -> bool:
    """Return whether a value is within a bound, which is always true if the bound is a string."""
    if not isinstance(bound, msgspec.Meta):
        return True
    low = value > bound.gt if bound.gt is not None else bound.ge is None or value >= bound.ge
    return low and (bound.le is None or value <= bound.le)


def _words(hint: Any) -> str:
    kind, inner = get_origin(hint), get_args(hint)
    if kind is Annotated:
        texts = [each for each in inner[1:] if isinstance(each, str)]
        return texts[0] if texts else _words(inner[0]) + "".join(map(_bound, inner[1:]))
    if kind in (Union, UnionType):
        return " or ".join(map(_words, inner))
    if kind is Literal:
        return "one of " + ", ".join(f'"{word}"' for word in inner)
    if kind is not None and kind is not tuple and issubclass(kind, Mapping):
        return f"a dict whose values are {_words(inner[1])}"
    if kind is not None and issubclass(kind, Collection):
        each = " and ".join(map(_words, inner)) if kind is tuple else f"{_words(inner[0])} each"
        return f"a {'pair' if kind is tuple else 'list'}: {each}"
    if kind is not None or not isinstance(hint, type):
        return "a function"
    return _NAMES.get(hint) or _article(hint.__name__)


_NAMES = {
    int: "an integer",
    float: "a finite number",
    str: "a string",
    bool: "True or False",
    NoneType: "None",
}


def _bound(bound: msgspec.Meta) -> str:
    least = f" above {bound.gt}" if bound.ge is None else f", at least {bound.ge}"
    return least if bound.le is None else f"{least}, at most {bound.le}"


def _found(value: Any) -> str:
    """Return a description of a value for an error message: its JSON text or its type."""
    if isinstance(value, msgspec.Struct):
        return _article(type(value).__name__.lower())
    if isinstance(value, str | int | float | list | tuple | dict | None):
        with suppress(TypeError, ValueError):  # a key that is a tuple, a number of 5,000 digits
            text = json.dumps(value, ensure_ascii=False, default=repr)
            return short(printable(text), 60)
    return f"{_article(type(value).__name__)} object"


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeio' else 'a'} {name}"


def described(thing: Any) -> dict[str, str]:
    """Return a docstring's descriptions of attributes or parameters, by name."""
    title = "Attributes" if isinstance(thing, type) else "Parameters"
    _, _, section = _docstring(thing).partition(f"\n{title}\n{'-' * len(title)}\n")
    section, _, _ = section.partition("\n\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(",")]
        for name in names if line.startswith(" ") else []:
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return found


def summary(thing: Any) -> str:
    """Return the part of a docstring before its sections."""
    return re.split(r"\n\w+\n-+\n", _docstring(thing))[0].strip()


def _docstring(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")
