"""What an update could not take, item by item."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ronda.hosts.embedding.plain import by_name, ids_of, is_frame, rows_of
from ronda.hosts.embedding.rates import by_job
from ronda.instances.errors import InputError


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """An item that an update did not take; all others count.

    Attributes
    ----------
    argument
        The argument of `Embedded.update` that it stood in.
    item
        The job's id, or the node's name; "": all of the argument, which cannot be read.
    message
        What is wrong with it, in one line: place, what was found, what was expected.
    """

    argument: str
    item: str
    message: str


def items(told: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield all that is told of jobs and nodes one by one: its argument, whose it is, and it."""
    for argument, given in told.items():
        try:
            parts = _parts(argument, given)
        except InputError:  # it cannot be read: who takes it says why
            parts = [("", given)]
        for item, part in parts:
            yield argument, item, part


def _parts(argument: str, given: Any) -> list[tuple[str, Any]]:
    if argument in ("added", "changed"):
        rows = rows_of(given, argument) if is_frame(given) else ids_of(given, argument)
        return [(str(r.get("id", "")) if isinstance(r, Mapping) else "", [r]) for r in rows]
    if argument == "measured":
        given = by_job(given, argument)
    if argument in ("removed", "completed") and not isinstance(given, Mapping):
        return [(str(job), [job]) for job in ids_of(given, argument)]
    return [(str(name), {name: each}) for name, each in by_name(given, argument).items()]
