"""Policies called ``BASE+NAME``: one that stands before another, with the parameters of both."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache

from ronda.solvers.contract import Capability
from ronda.solvers.registry import policy_class


def composed(
    bases: Collection[str], face: type, name: str, about: str, adds: Capability
) -> Callable[[str], type]:
    """Return what makes the class of a base that `face` stands before, by the base's name.

    The class has the base's parameters, then those of `face`, and the capabilities that `face`
    `adds`; `about` says in its description what that does.

    AttributeError for other bases: it is the ``__getattr__`` of the module of `face`.
    """

    @cache
    def class_of(base: str) -> type:
        if base not in bases:
            raise AttributeError(base)
        plain = policy_class(base)
        members = {
            "name": f"{base}+{name}",
            "capabilities": plain.capabilities | adds,  # type: ignore[attr-defined]
            "__doc__": f"`{base}`, {about}.\n\n{face.__doc__}",
            "__module__": face.__module__,
            "__qualname__": base,
        }
        return dataclass(frozen=True)(type(base, (face, plain), members))

    return class_of
