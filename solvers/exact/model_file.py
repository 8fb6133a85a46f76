"""Model files that any solver can read, and solution files that solvers write."""

import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any

import highspy
import numpy as np

from ronda.instances.base import Floats, Mask
from ronda.instances.errors import InputError
from ronda.instances.files import storage
from ronda.solvers.exact.from_pyomo import linear_form, set_values
from ronda.solvers.exact.highs import highs_of
from ronda.solvers.exact.linear_form import LinearForm

COMMENT = {".lp": "\\ ", ".mps": "* "}
"""The suffixes of model files, and the start of a comment line in each format."""

SLACK = 1e-6
"""The share of its terms by which a row may be broken, as solvers are not exact."""

_AFTER = {("#", "Rows"), ("#", "Dual"), ("#", "Basis")}
"""The start of the lines after which a HiGHS file has no more values of variables."""

_OF_ALL = ("Objective", "Objective_bound", "MIP_rel_gap")
"""The entries in HiGHS files about the whole solution."""

_FILES = "with the same --policy, in a file of HiGHS (raw or pretty), SCIP, CBC or Gurobi"

_OBJECTIVE = re.compile(r"objective(?: value)?\s*[:=]?\s+([-+.0-9e]+)\s*$", re.IGNORECASE)
"""The line with the objective in the files of all supported solvers."""

_STATUS = {"BS", "LB", "UB", "FX", "FR", "NB"}
"""The values of a variable's status before its bounds in pretty HiGHS files."""

_SECTIONS, _LONG = re.compile("^(bin|gen)$", re.MULTILINE), {"bin": "binary", "gen": "general"}
"""The section names in LP files by HiGHS, and the names that CBC understands too."""

_NOT_IN_LP = re.compile(r"[^A-Za-z0-9_.,()#]")


def export(model: Any, path: str | os.PathLike[str], remarks: Sequence[str] = ()) -> None:
    """Write a Pyomo model as ``.mps`` or ``.lp`` with its own names, completely or not at all.

    In names ``[...]`` becomes ``(...)``, and characters that LP files do not allow become ``_``.
    `remarks` are comment lines before the model. In ``.mps``, a maximisation becomes a minimisation
    with the opposite sign, because CBC ignores the sense. Raises InputError for another suffix, a
    model that is not linear, or a file that cannot be written.
    """
    target = Path(path)
    if target.suffix not in COMMENT:
        raise InputError(str(path), f"suffix {target.suffix!r}", " or ".join(COMMENT))
    form = linear_form(model)
    if target.suffix == ".mps" and form.maximize:
        form = replace(form, maximize=False, cost=-form.cost, offset=-form.offset)
    names = _names(str(one) for one in form.columns), _names(str(one) for one in form.rows)
    highs = highs_of(form, names=names)
    draft = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        if not target.parent.is_dir():
            raise InputError(str(path), "no such folder", "a folder that exists")
        if highs.writeModel(str(draft)) == highspy.HighsStatus.kError or not draft.exists():
            raise InputError(str(path), "a file that cannot be written", "a folder to write in")
        head = "".join(f"{COMMENT[target.suffix]}{line}\n" for line in remarks)
        draft.write_text(head + _SECTIONS.sub(lambda m: _LONG[m[0]], draft.read_text()))
        draft.replace(target)
    except OSError as error:
        raise InputError(str(path), str(error.strerror), "a file that can be written") from error
    finally:
        draft.unlink(missing_ok=True)


def _names(names: Iterable[str]) -> list[str]:
    taken: set[str] = set()
    written = []
    for number, name in enumerate(names):
        new = _NOT_IN_LP.sub("_", name.replace("[", "(").replace("]", ")").replace("'", ""))
        if new in taken:
            new = f"{new}_{number}"
        taken.add(new)
        written.append(new)
    return written


def load_solution(
    model: Any, path: str | os.PathLike[str], derived: Iterable[Any] = ()
) -> float | None:
    """Give the variables of a model the values in a solution file, or 0 if missing.

    `derived` variables follow from the others. If their values are missing, each row is checked
    with the values that suit it best.

    Files of HiGHS, SCIP, CBC and Gurobi are supported. A line has the name of a variable and then
    its value, or the value first in HiGHS's pretty style. Raises InputError, with the line,
    variable or row, if a value is not a number, or not whole for an integer variable; if a variable
    is unknown or occurs twice; or if a limit of the model is broken. Returns the objective in the
    file, or None.
    """
    label, form = storage.label(Path(path)), linear_form(model)
    lines = storage.read_bytes(Path(path)).decode("utf-8", "replace").splitlines()
    columns = {name: k for k, name in enumerate(_names(str(one) for one in form.columns))}
    told = _told(lines, label, columns, set(_names(str(one) for one in form.rows)))
    x = np.zeros(len(columns))
    x[list(told)] = list(told.values())
    whole = np.where(form.integer, np.rint(x), x)
    for k in np.flatnonzero(np.abs(x - whole) > 1e-4)[:1]:
        found = f"{x[k]:g} for {form.columns[k]}"
        raise InputError(label, found, "a whole number: an integer plan")
    follow = {id(variable) for variable in derived}
    own = (k not in told and id(one) in follow for k, one in enumerate(form.columns))
    _feasible(form, whole, np.fromiter(own, np.bool_, len(x)), label)
    set_values(form, whole)
    said = (match for line in lines if (match := _OBJECTIVE.search(line)))
    return next((_number(match[1]) for match in said), None)


def _told(
    lines: Sequence[str], label: str, columns: Mapping[str, int], rows: Container[str]
) -> dict[int, float]:
    """Return the values in a solution file, keyed by column, up to its rows or duals."""
    found: dict[int, float] = {}
    seen: dict[str, int] = {}
    unknown: list[tuple[str, str]] = []
    pretty, most = False, None
    for number, line in enumerate(lines, 1):
        words, place = line.split(), f"{label}, line {number}"
        if words[:1] == ["Rows"] or tuple(words[:2]) in _AFTER:
            break
        if words[:2] == ["#", "Columns"] and "".join(words[2:3]).lstrip("-").isdecimal():
            most = abs(int(words[2]))  # number of nonzero values in a sparse file
        if not words or words[0].startswith("#"):
            continue
        if words[-1] == "Name" and "Primal" in words:
            pretty = True
            continue
        name, text = _pair(words, pretty=pretty)
        value = _number(text)
        if name not in columns:
            if name in _OF_ALL or name in rows or (isnan(value) and text.lower() != "nan"):
                continue  # not a value of a variable
            unknown.append((place, repr(name)))
            continue
        if not isfinite(value):
            raise InputError(place, repr(text), f"a value of {name}")
        if name in seen:
            raise InputError(place, f"{name} again", f"each once: it is in line {seen[name]}")
        seen[name], found[columns[name]] = number, value
    if not found:
        expected = f"names as `ronda export` writes them {_FILES}"
        raise InputError(label, "no variable of this model", expected)
    for place, name in unknown[:1]:
        raise InputError(place, name, f"a variable of this model {_FILES}")
    if most is not None and len(found) != most:
        raise InputError(label, f"{len(found)} variables", f"{most}, as it says: is it cut off?")
    return found


def _pair(words: Sequence[str], *, pretty: bool) -> tuple[str, str]:
    """Return the possible name of a variable, and its value or "".

    A plain line has a number, the name and the value, after stars if CBC found no feasible
    solution. A pretty line has a number, possibly a status, two bounds, the value, ..., the name.
    """
    if pretty:
        rest = words[1:]
        rest = rest[1:] if rest and rest[0] in _STATUS else rest
        return words[-1], rest[2] if len(rest) > 3 else ""
    rest = words[1:] if words[0] == "**" and len(words) > 1 else words
    rest = rest[1:] if len(rest) > 2 and rest[0].isdecimal() else rest
    return rest[0], rest[1] if len(rest) > 1 else ""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


def _feasible(form: LinearForm, x: Floats, free: Mask, label: str) -> None:
    """Refuse a point (n,) that breaks bounds, or rows for all values of `free` columns (n,)."""
    low, high = np.where(free, form.lower, x), np.where(free, form.upper, x)
    room = SLACK * np.maximum(np.abs(x), 1.0)
    for k in np.flatnonzero((low < form.lower - room) | (high > form.upper + room))[:1]:
        bounds = f"{form.lower[k]:g} to {form.upper[k]:g}"
        raise InputError(label, f"{x[k]:g} for {form.columns[k]}", bounds)
    rows = np.repeat(np.arange(len(form.rows)), np.diff(form.start))
    ends = form.value * low[form.index], form.value * high[form.index]
    least, most, size = (
        np.bincount(rows, each, len(form.rows))
        for each in (np.minimum(*ends), np.maximum(*ends), np.abs(form.value * x[form.index]))
    )
    room = SLACK * np.maximum(size, 1.0)
    for broken, used, sign, limits in (
        (least > form.row_upper + room, least, "at most", form.row_upper),
        (most < form.row_lower - room, most, "at least", form.row_lower),
    ):
        for r in np.flatnonzero(broken)[:1]:
            own = form.index[form.start[r] : form.start[r + 1]]
            names = [str(form.columns[k]) for k in own if x[k] != 0]
            shown = ", ".join([*names[:4], *["..."] * (len(names) > 4)])
            found = f"{used[r]:g} with {shown or 'nothing'}"
            raise InputError(f"{label}, row {form.rows[r]}", found, f"{sign} {limits[r]:g}")
