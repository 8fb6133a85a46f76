"""Instances that a suite makes, with ronda's generators or a function in a file next to the suite.

A generator and a function take their table's parameters by name, and the seed if they have one.
"""

import inspect
import re
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from ronda.bench.suites.suite import converted
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.rules.problem import one_of, show
from ronda.solvers.plugins import find, known

GENERATORS: dict[str, Callable[..., Any]] = {
    "horizon": generate.horizon,
    "sweep": generate.sweep,
    "mixed": generate.mixed,
}


class Maker:
    """A generator, or ``FILE.py:NAME`` in a folder; `draws` says whether it takes a seed."""

    def __init__(self, word: str, folder: Path, place: str) -> None:
        self.make, self.place = _maker(word, folder, place), place
        known, hints = inspect.signature(self.make).parameters, get_type_hints(self.make)
        self.draws = "seed" in known
        fields = [
            (name, hints.get(name, Any), *(() if each.default is each.empty else (each.default,)))
            for name, each in known.items()
            if name != "seed"
        ]
        self.table = msgspec.defstruct("Table", fields, kw_only=True, forbid_unknown_fields=True)

    def __call__(self, given: Mapping[str, Any], seed: int) -> Instance:
        """Return an instance for the given parameters; refuse unknown and unusable ones."""
        table = converted(given, self.table, f"{self.place}.")
        values = {name: getattr(table, name) for name in self.table.__struct_fields__}
        try:
            made = self.make(**values | ({"seed": seed} if self.draws else {}))
        except InputError as error:
            raise InputError(f"{self.place}.{error.place}", error.found, error.expected) from None
        except Exception as error:  # the code may be the user's own
            found = f"{type(error).__name__}: {error}"
            raise InputError(self.place, found, "parameters that it can use") from error
        if not isinstance(made, Instance):
            raise InputError(self.place, f"a {type(made).__name__}", "a maker of instances")
        return made


def _maker(word: str, folder: Path, place: str) -> Callable[..., Any]:
    """Return a generator by its name, or a function from a Python file."""
    if word in GENERATORS:
        return GENERATORS[word]
    if (plugin := find("makers", word)) is not None:
        made: Callable[..., Any] = plugin.load(place)
        return made
    match = re.fullmatch(r"(.+\.py):(\w+)", word)
    if match is None:
        expected = f"one of {', '.join([*GENERATORS, *known('makers')])}, or FILE.py:NAME"
        raise InputError(f"{place}.make", show(word), expected)
    path, name = folder / match[1], match[2]
    try:
        there = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:
        found = f"{path}: {type(error).__name__}: {error}"
        raise InputError(f"{place}.make", found, "a file that can be imported") from error
    functions = {key: value for key, value in there.items() if inspect.isfunction(value)}
    if name not in functions:
        raise InputError(f"{place}.make", f"no function {show(name)}", one_of(functions, name))
    return functions[name]
