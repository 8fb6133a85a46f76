"""Find by name what packages outside the core bring: policies, commands, traces, makers, answers.

ronda's own, those in ``ronda.systems``, and ``ronda.questions`` and ``ronda.hosts``, declare it in
their ``__init__``, in a dictionary for each kind: where each thing is, by its name, and for what
help lists, with a line about it::

    POLICIES = {"hfht": "ronda.systems.hfta.hfht:Hfht"}
    COMMANDS = {"sleep": ("ronda.cli.commands.sleep:command", "Let the nodes sleep that ...")}

A folder that is deleted takes with it what it declares. Other people's packages declare policies,
commands and traces as entry points in the groups ``ronda.policies``, ``ronda.commands`` and
``ronda.traces``. Everything is imported when it is used.
"""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from operator import attrgetter
from types import ModuleType
from typing import Any, Literal, NamedTuple

from ronda.instances.errors import InputError

Kind = Literal["policies", "commands", "traces", "makers", "answers"]
"""Policies; commands, the name of a group before their own as in ``instances demand``; readers for
``ronda instances convert``; makers of instances for suites; answers of ``ronda solve``."""


class Plugin(NamedTuple):
    """Something that is found by its name: ``module:attribute``, and a line about it."""

    target: str
    about: str = ""
    ours: bool = True

    def load(self, place: str) -> Any:
        """Import it; InputError at a place if it is other people's and cannot be imported."""
        module, _, attribute = self.target.partition(":")
        try:
            return attrgetter(attribute)(importlib.import_module(module))
        except (Exception, SystemExit) as error:
            if self.ours:
                raise
            raise failed(place, error) from error


@cache
def declared(kind: Kind) -> dict[str, Plugin]:
    """Return what ronda's own packages declare, by name."""
    found: dict[str, Plugin] = {}
    for package in _packages():
        for name, given in getattr(package, kind.upper(), {}).items():
            found[name] = Plugin(given) if isinstance(given, str) else Plugin(*given)
    return found


def _packages() -> Iterator[ModuleType]:
    """Import those of ronda's packages outside the core that are there."""
    if find_spec("ronda.systems") is not None:
        for room in pkgutil.iter_modules(importlib.import_module("ronda.systems").__path__):
            yield importlib.import_module(f"ronda.systems.{room.name}")
    for name in ("ronda.questions", "ronda.hosts"):
        if find_spec(name) is not None:
            yield importlib.import_module(name)


def known(kind: Kind) -> dict[str, Plugin]:
    """Return all that is declared, by name: ronda's own first, then other people's."""
    return declared(kind) | _others(kind, tuple(sys.path))


@cache
def _others(kind: Kind, _path: tuple[str, ...]) -> dict[str, Plugin]:
    """Return what the packages installed along a path declare, but for names of ronda's own."""
    from importlib.metadata import entry_points  # which takes a while, and most calls need not

    points = sorted(entry_points(group=f"ronda.{kind}"))
    others = {each.name: Plugin(each.value, f"From {each.module}.", ours=False) for each in points}
    return {name: each for name, each in others.items() if name not in declared(kind)}


def find(kind: Kind, name: str) -> Plugin | None:
    """Return what goes by a name, if anything does."""
    return declared(kind).get(name) or known(kind).get(name)


def failed(place: str, error: BaseException) -> InputError:
    """Return the error that says, at a place, why code cannot be imported."""
    told = " ".join(str(error).split())
    found = f"{type(error).__name__}: {told}" if told else type(error).__name__
    return InputError(place, found, "code that can be imported")
