"""Plugins by name: the policies, commands, traces, makers and answers outside the core.

ronda's own packages (``ronda.questions``, ``ronda.hosts`` and those in ``ronda.systems``) declare
their plugins in their ``__init__``. Each kind has a dictionary that maps a name to a place in the
code. A plugin that help lists has a line of description as well::

    POLICIES = {"hfht": "ronda.systems.hfta.hfht:Hfht"}
    COMMANDS = {"sleep": ("ronda.cli.commands.sleep:command", "Let the nodes sleep that ...")}

Deleting the folder of a package removes its plugins. Third-party packages declare policies,
commands and traces as entry points in the groups ``ronda.policies``, ``ronda.commands`` and
``ronda.traces``. A plugin is imported when it is used.
"""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from operator import attrgetter
from types import ModuleType
from typing import Any, Literal, NamedTuple

from ronda.instances.errors import InputError

Kind = Literal["policies", "commands", "traces", "makers", "answers"]
"""The kinds of plugin: policies; commands, which may name their group first, as in ``instances
demand``; readers for ``ronda instances convert``; makers of instances for suites; and answers of
``ronda solve``."""


class Plugin(NamedTuple):
    """A plugin: its place in the code as ``module:attribute``, and a line of description."""

    target: str
    about: str = ""
    ours: bool = True

    def load(self, place: str) -> Any:
        """Import the plugin; raise InputError at `place` if third-party code fails to import."""
        module, _, attribute = self.target.partition(":")
        try:
            return attrgetter(attribute)(importlib.import_module(module))
        except (Exception, SystemExit) as error:
            if self.ours:
                raise
            raise failed(place, error) from error


@lru_cache(maxsize=16)
def declared(kind: Kind) -> dict[str, Plugin]:
    """Return the plugins that ronda's own packages declare, keyed by name."""
    found: dict[str, Plugin] = {}
    for package in _packages():
        for name, given in getattr(package, kind.upper(), {}).items():
            found[name] = Plugin(given) if isinstance(given, str) else Plugin(*given)
    return found


def _packages() -> Iterator[ModuleType]:
    """Import and yield the installed packages of ronda outside the core."""
    if find_spec("ronda.systems") is not None:
        for room in pkgutil.iter_modules(importlib.import_module("ronda.systems").__path__):
            yield importlib.import_module(f"ronda.systems.{room.name}")
    for name in ("ronda.questions", "ronda.hosts"):
        if find_spec(name) is not None:
            yield importlib.import_module(name)


def known(kind: Kind) -> dict[str, Plugin]:
    """Return all declared plugins, keyed by name: ronda's own first, then third-party ones."""
    return declared(kind) | _others(kind, tuple(sys.path))


@lru_cache(maxsize=16)
def _others(kind: Kind, _path: tuple[str, ...]) -> dict[str, Plugin]:
    """Return third-party plugins of packages on a path, except those with names of ronda's own."""
    from importlib.metadata import entry_points  # slow to import, and most calls do without

    points = sorted(entry_points(group=f"ronda.{kind}"))
    others = {each.name: Plugin(each.value, f"From {each.module}.", ours=False) for each in points}
    return {name: each for name, each in others.items() if name not in declared(kind)}


def find(kind: Kind, name: str) -> Plugin | None:
    """Return the plugin with the given name, or None if there is none."""
    return declared(kind).get(name) or _others(kind, tuple(sys.path)).get(name)


def failed(place: str, error: BaseException) -> InputError:
    """Return the error that says why code cannot be imported; it names `place`."""
    told = " ".join(str(error).split())
    found = f"{type(error).__name__}: {told}" if told else type(error).__name__
    return InputError(place, found, "code that can be imported")
