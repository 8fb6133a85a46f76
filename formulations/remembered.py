"""Derived values kept with the frozen record that they are made from."""

from collections.abc import Callable, Hashable
from typing import TypeVar

from ronda.instances.base import Record

Value = TypeVar("Value")


def remembered(record: Record, key: Hashable, make: Callable[[], Value]) -> Value:
    """Return what `make` gives, made once for each record object and key.

    Records are frozen and have a ``__dict__`` beside their fields (it is how ``cached_property``
    works on them): what is kept there lives and dies with the record, is not written to files and
    takes no part in comparisons. Hashing a big profile to look it up would cost more than most
    of what is remembered.

    Parameters
    ----------
    record
        The record that the value depends on, and on nothing else but the key.
    key
        Which value: unique in the code base, so it should begin with a name.
    make
        Makes the value.
    """
    known: dict[Hashable, Value] = record.__dict__.setdefault("remembered", {})
    try:
        return known[key]
    except KeyError:
        return known.setdefault(key, make())
