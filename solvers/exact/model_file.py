"""A Pyomo model as a file that every solver reads, and the file of a solution that it writes."""

import os
import re
from collections.abc import Iterable, Sequence
from math import isfinite, nan
from pathlib import Path
from typing import Any

import highspy

from ronda.instances.errors import InputError
from ronda.instances.files import storage
from ronda.solvers.exact.form import linear_form
from ronda.solvers.exact.highs import highs_of

COMMENT = {".lp": "\\ ", ".mps": "* "}
"""The suffixes of model files, and how a line of comment begins in each."""

WHOLE = 1e-4
"""Integers of other solvers are whole to this."""

_SECTIONS, _LONG = re.compile("^(bin|gen)$", re.MULTILINE), {"bin": "binary", "gen": "general"}
"""Sections of LP files as HiGHS writes them, and as CBC understands them too."""

_NOT_IN_LP = re.compile(r"[^A-Za-z0-9_.,()#]")


def export(model: Any, path: str | os.PathLike[str], remarks: Sequence[str] = ()) -> None:
    """Write a Pyomo model as ``.mps`` or ``.lp``, with its own names; completely or not at all.

    Of names ``[...]`` becomes ``(...)``, and characters that LP files do not allow ``_``. `remarks`
    are lines of comment before the model. InputError if the suffix is another one, the model is not
    linear, or the file cannot be written.
    """
    target = Path(path)
    if target.suffix not in COMMENT:
        raise InputError(str(path), f"suffix {target.suffix!r}", " or ".join(COMMENT))
    form = linear_form(model)
    names = _names(one.name for one in form.columns), _names(one.name for one in form.rows)
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
    """Return names as a file can hold them, still all different."""
    taken: set[str] = set()
    written = []
    for number, name in enumerate(names):
        new = _NOT_IN_LP.sub("_", name.replace("[", "(").replace("]", ")").replace("'", ""))
        if new in taken:
            new = f"{new}_{number}"
        taken.add(new)
        written.append(new)
    return written


def load_solution(model: Any, path: str | os.PathLike[str]) -> None:
    """Give the variables of a model the values of a solution file; those not in it are 0.

    Each line that has the name of a variable has its value behind it, as in the files of HiGHS,
    SCIP, CBC and Gurobi; other lines do not count. InputError if no line names a variable, a value
    is no number, or that of an integer variable not a whole one.
    """
    label, columns = storage.label(Path(path)), linear_form(model).columns
    at = {name: k for k, name in enumerate(_names(one.name for one in columns))}
    found: dict[int, float] = {}
    for number, line in enumerate(_lines(path), 1):
        words = line.split()
        k = next((k for k, word in enumerate(words[:-1]) if word in at), None)
        if k is None:
            continue
        if at[words[k]] in found:
            break  # what follows are duals, or another solution
        try:
            value = float(words[k + 1])
        except ValueError:
            value = nan
        if not isfinite(value):
            expected = f"a value of {words[k]}"
            raise InputError(f"{label}, line {number}", repr(words[k + 1]), expected)
        found[at[words[k]]] = value
    if not found:
        raise InputError(label, "no variable of this model", "names as `ronda export` writes them")
    for k, variable in enumerate(columns):
        value = found.get(k, 0.0)
        if variable.is_integer() and abs(value - round(value)) > WHOLE:
            raise InputError(
                label, f"{value:g} for {variable.name}", "a whole number: an integer plan"
            )
        variable.set_value(value, skip_validation=True)


def _lines(path: str | os.PathLike[str]) -> list[str]:
    return storage.load(Path(path)).decode("utf-8", "replace").splitlines()
