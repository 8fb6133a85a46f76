"""The schema of a suite, and its reader for TOML. docs/suites.md is the specification."""

import re
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

import ronda.bench
from ronda.bench.runs.specs import BoundEffort
from ronda.instances.base import Name, NonNegative, Positive, Record
from ronda.instances.errors import InputError
from ronda.instances.files import storage
from ronda.instances.instance import DECLARED, Knowledge
from ronda.instances.rules.diagnose import mismatch, non_finite
from ronda.instances.rules.problem import show
from ronda.instances.schedule import RECORDED

PACKAGED = Path(ronda.bench.__file__).parent / "data" / "suites"
"""The folder of packaged suites; a suite's name is the name of its file."""


class SuitePart(Record, frozen=True, kw_only=True):
    """The axes to combine; a part in ``runs`` takes missing axes from the suite."""

    instances: tuple[Name | dict[str, Any], ...] = ()
    policies: tuple[Name | dict[str, Any], ...] = ()
    knowledge: tuple[Knowledge, ...] = ()
    seeds: str = ""
    by_seed: tuple[Name, ...] = ()  # axes whose values are distributed over seeds
    change: dict[str, Any] = {}
    time_limit_s: Positive | None = None
    predictor: str = ""
    recorded: tuple[Name, ...] = ()  # schedules of logs of the instances
    bound: BoundEffort | None = None  # quick, if none


class Ratio(Record, frozen=True, kw_only=True):
    """The base of ratios: the runs that differ only in the axes of `to`."""

    to: dict[str, str | float | bool]
    mean: Literal["geometric", "of means"] = "geometric"
    floor: NonNegative = 0.0  # figures below it count as this much
    lost_above: Positive = 1.01


class TableSpec(Record, frozen=True, kw_only=True):
    """A table with a row per value of the axes `rows`; runs that differ in other axes are averaged.

    The values of `across` become columns that show `cells`: the first, and the others in brackets.
    """

    rows: tuple[Name, ...] = ("policy",)
    across: str = ""
    cells: tuple[Name, ...] = ()
    columns: tuple[Name, ...] = ()


class Suite(SuitePart, frozen=True, kw_only=True):
    """A comparison: its runs, their limits, and the table of its results.

    Without `table`, each instance and change has a table with all default columns.
    """

    about: str = ""
    runs: tuple[SuitePart, ...] = ()
    timeout_s: Positive | None = None
    memory_mib: Positive | None = None
    ratio: Ratio | None = None
    table: TableSpec | None = None
    figure: tuple[Name, Name] | None = None  # two columns: a point for each row

    def parts(self) -> tuple[SuitePart, ...]:
        """Return the complete parts to expand."""
        usual = {"knowledge": (DECLARED,), "seeds": "0"}
        found = []
        for part in self.runs or (SuitePart(),):
            given = {n: getattr(part, n) or getattr(self, n) for n in SuitePart.__struct_fields__}
            given["change"] = self.change | part.change
            found.append(
                SuitePart(**usual | {name: value for name, value in given.items() if value})
            )
        return tuple(found)

    def asked(self, **given: Any) -> "Suite":
        """Return the suite with the given fields, which replace those of all its parts.

        A policy that serves as the base of ratios still runs.
        """
        if "policies" in given and any(part.policies for part in self.runs):
            found = "a suite whose parts have policies of their own"
            raise InputError("--policies", found, "a copy of it with others")
        if "policies" in given and self.ratio is not None and "policy" in self.ratio.to:
            base = {self.ratio.to["policy"]} - {RECORDED}
            given["policies"] = tuple(dict.fromkeys((*base, *given["policies"])))
        plain = {n: getattr(SuitePart(), n) for n in given if n in SuitePart.__struct_fields__}
        return replace(self, runs=tuple(replace(part, **plain) for part in self.runs), **given)


def locate(name: str) -> Path:
    """Return the file of a suite: the file with the given name, or else the packaged one."""
    path, packaged = Path(name), PACKAGED / Path(name).name
    return packaged if name == packaged.name and packaged.exists() and not path.exists() else path


def read(path: Path) -> Suite:
    """Read a suite.

    Raises
    ------
    InputError
        If anything in the file is unknown, missing or of a wrong type; it names the file and place.
    """
    place, data = storage.label(path), storage.read_bytes(path)
    try:
        text = data.decode("utf-8")
        document = tomllib.loads(text)
    except UnicodeDecodeError as error:
        found = f"byte 0x{data[error.start]:02x} (byte {error.start} of the file)"
        raise InputError(place, found, "TOML text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        said, lines = str(error), text.splitlines() or [""]
        match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", said, re.DOTALL)
        words, line, where = said, len(lines), ""
        if match is not None:
            words, line, where = match[1], int(match[2]), f" column {match[3]}"
        place = f"{place}, line {line}{where}"
        raise InputError(place, show(lines[line - 1].strip()), f"TOML ({words})") from None
    except RecursionError:
        raise InputError(place, "brackets nested too deeply", "a suite, which has few") from None
    for where, value in non_finite(document):
        raise InputError(f"{place}, {where}", show(value), "a finite number")
    made: Suite = converted(document, Suite, f"{place}, ")
    return made


def converted(value: Any, kind: Any, before: str) -> Any:
    """Return a value from TOML as a record or a number; refuse an unsuitable one at its place."""
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        said = mismatch(error, value, kind, known_fields=True)
        place = (before + said.place).rstrip(" ,.")
        raise InputError(place, said.found, said.expected) from None
    except InputError as error:  # raised by a record itself
        raise InputError(before + error.place, error.found, error.expected) from None
