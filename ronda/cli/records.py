"""Options made from the fields of a record or the parameters of a function."""

import inspect
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from ronda.cli.options import SEED, Command, stacked
from ronda.instances.arguments import described
from ronda.instances.errors import InputError


def options_of(
    source: Callable[..., Any],
    *,
    skip: Collection[str] = (),
    bare: bool = False,
    unset: bool = False,
    metavar: str | None = None,
    **types: Any,
) -> Callable[[Command], Command]:
    """Return a decorator that adds options for the fields of a record, or a function's parameters.

    A parameter that is a record becomes the options of its fields.

    Parameters
    ----------
    skip
        Fields that the command handles in another way.
    bare
        Whether options drop the unit at the end of a name: ``--gap`` for ``gap_s``.
    unset
        Whether an option that is not given is None, not the field's default.
    types
        The types of options whose annotation is not specific enough.
    """
    words, hints = described(source), get_type_hints(source)
    fields = [p for p in inspect.signature(source).parameters.values() if p.name not in skip]

    def option_of(field: inspect.Parameter) -> Callable[[Command], Command]:
        if (record := _record(hints[field.name])) is not None:
            return options_of(record, bare=bare, unset=unset, **types)
        default = None if unset or field.default is field.empty else field.default
        return click.option(
            f"--{_flag(field.name, bare=bare)}",
            field.name,
            type=types.get(field.name) or _type(field.name, hints[field.name]),
            default=default,
            required=field.default is field.empty and not unset,
            metavar=metavar,
            show_default=default not in (None, ""),
            help=_help(words.get(field.name, ""), {p.name for p in fields}, bare=bare),
        )

    return stacked(*map(option_of, fields))


def taken(source: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Return the result of a record or function for its values, which are removed from `given`.

    Errors name options instead of fields.
    """
    hints, own = get_type_hints(source), {}
    for name in inspect.signature(source).parameters:
        if (record := _record(hints[name])) is not None:
            own[name] = taken(record, given)
        elif name in given:
            own[name] = given.pop(name)
    with named(own):
        return source(**own)


def _record(hint: Any) -> type | None:
    """Return the record type of a parameter, or None."""
    kinds = [kind for kind in get_args(hint) or [hint] if hasattr(kind, "__match_args__")]
    return kinds[0] if kinds else None


@contextmanager
def named(fields: Collection[str]) -> Iterator[None]:
    """Rename the field in an error to its option."""
    try:
        yield
    except InputError as error:
        if error.place.replace("-", "_") not in fields:
            raise
        place = f"--{_flag(error.place, bare=False)}"
        raise InputError(place, error.found, error.expected) from None


def _flag(name: str, *, bare: bool) -> str:
    return (name.removesuffix("_s") if bare else name).replace("_", "-")


def _type(name: str, hint: Any) -> click.ParamType[Any]:
    """Return the type of an option for an annotation; None in the annotation means not given."""
    if name == "seed":
        return SEED
    kinds = [each for each in get_args(hint) if each is not type(None)]
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    (kind,) = kinds or [hint]
    found: click.ParamType[Any] = click.types.convert_type(kind)
    return found


def _help(words: str, names: Collection[str], *, bare: bool) -> str:
    def shown(match: re.Match[str]) -> str:
        return f"--{_flag(match[1], bare=bare)}" if match[1] in names else match[1]

    return re.sub(r"`+([^`]+)`+", shown, words)
