"""Any Pyomo model through the program ``cbc``: the one on the path, or that of the PuLP wheel.

CBC gets the arrays of a model (`LinearForm`) as a file, and what it says and writes is read. A
program that does not stop in time is stopped, and then has no solution.
"""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers.exact.form import (
    Effort,
    LinearForm,
    Outcome,
    found,
    known_start,
    nothing,
    proof,
    solved,
    too_late,
)
from ronda.solvers.exact.highs import highs_of

UNITS = 2.0**10
"""CBC's units of an objective: it writes bounds with three decimals, and this keeps six."""

ROUNDING = 0.5e-3 / UNITS
"""How far a bound may be from the one that CBC wrote."""

LATE_S = 0.05
"""Seconds kept for starting CBC and for reading what it wrote (measured on one slow core)."""

EARLY, MOST_EARLY_S = 0.3, 1.5
"""CBC looks at its clock this much too late at worst (share of the time, seconds): it is told a
limit that is sooner by as much (measured: 1.2 s late of 1 s, 0.3 s of 3 s)."""

_FOUND = re.compile(r"Integer solution of (\S+) found .*\(([\d.]+) seconds\)")
_BOUND = re.compile(r"^Lower bound:\s+(\S+)", re.MULTILINE)
_NODES = re.compile(r"^Enumerated nodes:\s+(\d+)", re.MULTILINE)
_VERSION = re.compile(r"^Version: (\S+)", re.MULTILINE)


@cache
def executable() -> str | None:
    """Return the path of the program; None if there is none."""
    program = shutil.which("cbc")
    if program is None and find_spec("pulp") is not None:
        from pulp.apis.coin_api import pulp_cbc_path

        program = shutil.which(pulp_cbc_path)
    return program


def solve_form(form: LinearForm, effort: Effort, start: Floats | None = None) -> Outcome:
    """Solve a model given as arrays."""
    deadline, gap = effort.deadline, effort.gap
    began = deadline.elapsed()
    program = executable()
    if program is None:
        raise InputError("cbc", "no such program", "pip install 'ronda[solvers]'")
    with tempfile.TemporaryDirectory(prefix="ronda-cbc-") as name:
        folder = Path(name)
        model, answer = folder / "model.mps", folder / "answer.txt"
        if highs_of(_least(form)).writeModel(str(model)) == highspy.HighsStatus.kError:
            raise InputError("cbc", "a model that cannot be written", "room in the folder TMPDIR")
        words = [program, str(model), "-threads", "0", "-timeMode", "elapsed"]
        words += ["-ratioGap", repr(gap), "-randomCbcSeed", str(effort.seed % 2**31)]
        if gap < 1e-6:
            words += ["-primalTolerance", "1e-9", "-integerTolerance", "1e-9"]
        known = known_start(form, start)
        if start is not None and known is not None:
            words += ["-mips", str(_write_start(folder / "start.txt", known, start))]
        left_s = effort.left_s - LATE_S
        if left_s <= 0:
            return too_late(form)
        if np.isfinite(left_s):
            words += ["-sec", f"{left_s - min(EARLY * left_s, MOST_EARLY_S):.3f}"]
        words += ["-solve", "-solution", str(answer)]
        called_s = deadline.elapsed()
        try:
            said = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                cwd=folder,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                timeout=left_s if np.isfinite(left_s) else None,
            )
        except subprocess.TimeoutExpired:
            solve_s = deadline.elapsed() - began
            return nothing(form, StopReason.TIME_LIMIT, "did not stop in time (CBC)", solve_s)
        log = said.stdout.decode("utf-8", "replace")
        written = answer.read_text().splitlines() if answer.exists() else [""]
    return _read(form, log, written, called_s, deadline.elapsed() - began)


def _least(form: LinearForm) -> LinearForm:
    """Return the model as CBC gets it: the least of an objective without an offset."""
    sign = -UNITS if form.maximize else UNITS
    return replace(form, maximize=False, cost=sign * form.cost, offset=0.0)


def _write_start(path: Path, known: NDArray[np.int64], start: Floats) -> Path:
    """Write the values to start from, as CBC writes its solutions."""
    lines = [f"{k} c{k} {float(start[k])!r} 0\n" for k in known.tolist()]
    path.write_text("".join(["Stopped on time - objective value 0\n", *lines]))
    return path


def _read(
    form: LinearForm, log: str, written: list[str], called_s: float, solve_s: float
) -> Outcome:
    """Translate what CBC said, and wrote."""
    status = written[0].partition(" - objective")[0].strip()
    version = _VERSION.search(log)
    message = f"{status or 'no answer'} (CBC {version[1] if version else '?'})"
    if "nfeasible" in status:
        return nothing(form, StopReason.INFEASIBLE, message, solve_s)
    late, complete = status.startswith("Stopped on time"), status.startswith("Optimal")
    if not late and not complete:
        return nothing(form, StopReason.ERROR, message, solve_s)
    stop = StopReason.TIME_LIMIT if late else StopReason.COMPLETE

    def ours(worth: float) -> float:
        return (-worth if form.maximize else worth) / UNITS + form.offset

    x = objective = None
    if "no integer solution" not in status:
        x = _values(form, written[1:])
        objective = form.objective(x)
    bound = _bound(form, log, ours)
    if bound is None and complete:
        bound = objective
    if objective is not None and bound is not None and complete:
        bound, stop = proof(form, objective, bound)
    nodes = _NODES.search(log)
    better = [(called_s + float(when), ours(float(worth))) for worth, when in _FOUND.findall(log)]
    return found(
        form,
        stop,
        x,
        bound,
        message=message,
        solve_s=solve_s,
        nodes=int(nodes[1]) if nodes else 0,
        incumbents=tuple(better),
    )


def _values(form: LinearForm, lines: list[str]) -> Floats:
    """Return (n,) the values of a solution; those that are not written are 0."""
    x = np.zeros(len(form.cost))
    for line in lines:
        words = line.replace("**", " ").split()
        x[int(words[1].removeprefix("c"))] = float(words[2])
    x[form.integer] = np.round(x[form.integer])
    return x


def _bound(form: LinearForm, log: str, ours: Any) -> float | None:
    """Return the bound that CBC wrote, on the safe side of its rounding; None if it wrote none."""
    written = _BOUND.findall(log)
    if not written:
        return None
    side = 1.0 if form.maximize else -1.0
    return float(ours(float(written[-1]))) + side * ROUNDING


def solve(model: Any, **effort: Any) -> Outcome:
    """Solve a Pyomo model and load the solution; as `ronda.solvers.exact.highs.solve`."""
    return solved(model, solve_form, Effort(**effort))
