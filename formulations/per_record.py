"""Functions of a record that remember their last values: by identity, and within a stated bound."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, Generic, ParamSpec, TypeVar

Of = TypeVar("Of")
Given = ParamSpec("Given")
Value = TypeVar("Value")


class _Same(Generic[Of]):
    """A record that is equal only to itself: a big one costs more to hash than most values."""

    __slots__ = ("record",)

    def __init__(self, record: Of) -> None:
        self.record = record

    def __hash__(self) -> int:
        return id(self.record)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.record is other.record


def per_record(
    maxsize: int,
) -> Callable[[Callable[Concatenate[Of, Given], Value]], Callable[Concatenate[Of, Given], Value]]:
    """Decorate a function of a record and hashable arguments: its last values are remembered."""

    def decorate(
        make: Callable[Concatenate[Of, Given], Value],
    ) -> Callable[Concatenate[Of, Given], Value]:
        @lru_cache(maxsize)
        @wraps(make)
        def known(same: _Same[Of], *args: Given.args, **kwargs: Given.kwargs) -> Value:
            return make(same.record, *args, **kwargs)

        @wraps(make)
        def of(record: Of, /, *args: Given.args, **kwargs: Given.kwargs) -> Value:
            return known(_Same(record), *args, **kwargs)  # type: ignore[arg-type]

        return of

    return decorate
