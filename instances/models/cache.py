"""Bounded caches, for functions of a record and for values that are made in batches."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache, wraps
from threading import Lock
from typing import Concatenate, Generic, ParamSpec, TypeVar

Of = TypeVar("Of")
Given = ParamSpec("Given")
Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)


class _Same(Generic[Of]):
    """A record compared by identity, as hashing a big record costs more than most values."""

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
    """Decorate a function of a record and hashable arguments to cache its last values."""

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


class Remembered(Generic[Key, Value]):
    """A cache of the last `maxsize` values by key, which makes missing values together."""

    def __init__(self, maxsize: int) -> None:
        self._most, self._known, self._using = maxsize, OrderedDict[Key, Value](), Lock()

    def of(
        self,
        keys: Sequence[Key],
        make: Callable[[Sequence[Key]], Iterable[tuple[Key, Value]]],
    ) -> list[Value]:
        """Return the values of the keys, in the order of the keys.

        `make` is called with the keys that are not cached, and yields pairs (key, value) in any
        order. Yielded values are cached even if `make` raises.
        """
        with self._using:
            found = {key: self._known[key] for key in keys if key in self._known}
        try:
            found.update(make([key for key in dict.fromkeys(keys) if key not in found]))
        finally:
            self._remember(found)
        return [found[key] for key in keys]

    def _remember(self, found: Mapping[Key, Value]) -> None:
        with self._using:
            for key, value in found.items():
                self._known[key] = value
                self._known.move_to_end(key)
            while len(self._known) > self._most:
                self._known.popitem(last=False)
