"""Any Pyomo model through HiGHS: solve and export.

The Pyomo model stays the formulation of record; HiGHS gets its arrays
(`ronda.solvers.exact.highs`).
"""

import os
import re
from pathlib import Path
from typing import Any

import highspy
import numpy as np

from ronda.instances.errors import InputError
from ronda.solvers.contract import Deadline
from ronda.solvers.exact.highs import Outcome, highs_of, solve_form
from ronda.solvers.exact.linear_form import linear_form

SUFFIXES = (".lp", ".mps")

_NOT_IN_LP = re.compile(r"[^A-Za-z0-9_.,()#]")


def solve(
    model: Any,
    *,
    deadline: Deadline | None = None,
    gap: float = 1e-4,
    seed: int = 0,
    reserve_s: float = 0.0,
) -> Outcome:
    """Solve a Pyomo model and load the solution into its variables.

    Values that the variables have beforehand are the warm start, if all integer ones have one.
    Without a solution they are left as they are. The same model, seed and start give the same
    solution, unless the clock cut the search. InputError if the model is not linear.

    Parameters
    ----------
    deadline
        By when to return; None: no limit.
    gap
        Relative gap between solution and bound at which to stop.
    reserve_s
        Seconds that must be left when HiGHS returns.
    """
    form = linear_form(model)
    start = np.array([np.nan if c.value is None else c.value for c in form.columns], dtype=float)
    outcome = solve_form(
        form, deadline=deadline, gap=gap, seed=seed, start=start, reserve_s=reserve_s
    )
    if outcome.x is not None:
        for variable, number in zip(form.columns, outcome.x.tolist(), strict=True):
            variable.set_value(number, skip_validation=True)
    return outcome


def export(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a Pyomo model as ``.mps`` or ``.lp``, with its own names; completely or not at all.

    Blanks in names become ``_``; in ``.lp`` files, whose syntax allows less, ``[...]`` becomes
    ``(...)`` and other special characters ``_``. InputError if the suffix is another one, the model
    is not linear, or the file cannot be written.
    """
    target = Path(path)
    if target.suffix not in SUFFIXES:
        raise InputError(str(path), f"suffix {target.suffix!r}", " or ".join(SUFFIXES))
    form = linear_form(model)
    plain = target.suffix == ".lp"
    columns, rows = ([one.name for one in many] for many in (form.columns, form.rows))
    highs = highs_of(form, names=(_names(columns, plain=plain), _names(rows, plain=plain)))
    draft = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        if not target.parent.is_dir():
            raise InputError(str(path), "no such folder", "a folder that exists")
        if highs.writeModel(str(draft)) == highspy.HighsStatus.kError or not draft.exists():
            raise InputError(str(path), "a file that cannot be written", "a folder to write in")
        draft.replace(target)
    except OSError as error:
        raise InputError(str(path), str(error.strerror), "a file that can be written") from error
    finally:
        draft.unlink(missing_ok=True)


def _names(names: list[str], *, plain: bool) -> list[str]:
    """Return the names as a file can hold them, still all different."""
    taken: set[str] = set()
    written = []
    for number, name in enumerate(names):
        new = _NOT_IN_LP.sub("_", name.replace("[", "(").replace("]", ")")) if plain else name
        new = "_".join(new.split())
        if new in taken:
            new = f"{new}~{number}"
        taken.add(new)
        written.append(new)
    return written
