"""The solvers of models by name, with their abilities and a check that they are installed.

Figures that a solver does not report are missing in its outcome. This module loads no solver.
"""

import importlib
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from ronda.instances.base import Floats
from ronda.instances.errors import InputError

if TYPE_CHECKING:
    from ronda.solvers.exact.linear_form import Effort, LinearForm, Outcome


@dataclass(frozen=True, slots=True)
class Solver:
    """A solver of models as arrays, called by ``module.solve_form(form, effort, start)``.

    ``needs`` is the Python module that it loads, and ``packages`` are the packages named in
    records. ``install`` says how to install it, and ``lacks`` are its missing abilities. With
    ``through`` it uses the Pyomo interface of that name. ``square_s`` is the time to translate a
    model, in seconds per squared number of options.
    """

    module: str
    needs: str
    packages: tuple[str, ...]
    install: str
    lacks: tuple[str, ...] = ()
    through: str = ""
    square_s: float = 0.0

    @property
    def installed(self) -> bool:
        """Whether the solver is installed."""
        if self.through == "cbc":
            return cbc_program() is not None
        if self.needs and find_spec(self.needs.partition(".")[0]) is None:
            return False
        return self.through in ("", "scip_direct") or _available(self.through)  # has a licence

    def refuse(self, given: Mapping[str, Any], place: str) -> None:
        """Refuse options ``SOLVER.NAME`` that the solver does not have.

        Raises InputError for an option of another solver, an unknown name, an option that ronda
        sets, or a value that the solver does not take. A solver without a list of names checks
        options when it solves.
        """
        known = self._module.defaults(**self._told) if given else {}
        for key, value in given.items():
            prefix, _, name = key.partition(".")
            where = f"{place}: {key}"
            if SOLVERS.get(prefix) is not self:
                own = next(name for name, solver in SOLVERS.items() if solver is self)
                raise InputError(where, f"an option of {prefix!r}", f"{own}.NAME")
            if name in getattr(self._module, "RONDAS", ()):
                told = (say for word, say in INSTEAD.items() if word in name)
                found = "an option that ronda sets by itself"
                raise InputError(where, found, next(told, "one that it leaves to you"))
            if known and name not in known:
                near = get_close_matches(name, known, n=5, cutoff=0.4)
                expected = (
                    f"an option that ronda leaves to you{', as ' * bool(near)}{', '.join(near)}"
                )
                raise InputError(where, f"no option {name!r} of {prefix}", expected)
            if known and not _like(value, known[name]):
                expected = f"{_KINDS.get(type(known[name]), 'a word')}, as {known[name]!r}"
                raise InputError(where, repr(value), expected)
            if not self._module.takes(name, value, **self._told):
                raise InputError(where, repr(value), f"a value that {prefix} takes")

    @property
    def _module(self) -> Any:
        return importlib.import_module(self.module)

    @property
    def _told(self) -> dict[str, Any]:
        """The additional arguments of the module's functions."""
        if self.through == "cbc":
            return {"through": self.through, "program": cbc_program()}
        return {"through": self.through} if self.through else {}

    def solve_form(
        self, form: "LinearForm", effort: "Effort", start: Floats | None = None
    ) -> "Outcome":
        """Solve a model as arrays, as `ronda.solvers.exact.highs.solve_form` does."""
        found: Outcome = self._module.solve_form(form, effort, start, **self._told)
        return found


class Writer(Protocol):
    """A stream for a log, such as ``sys.stderr``."""

    def write(self, text: str, /) -> object:
        """Write a piece of text."""

    def flush(self) -> object:
        """Flush the text written so far."""


LOG: ContextVar[Writer | None] = ContextVar("LOG", default=None)
"""The log of running solvers. None: no log."""


@contextmanager
def logged(log: Writer | None) -> Iterator[None]:
    """Let solvers write to a log; raise InputError if the log is not a stream."""
    if log is not None and not (hasattr(log, "write") and hasattr(log, "flush")):
        raise InputError(
            "log", f"a {type(log).__name__} object", "a stream, as sys.stderr, or None"
        )
    kept = LOG.set(log)
    try:
        yield
    finally:
        LOG.reset(kept)


INSTEAD = {"gap": "gap=, as in milp(gap=1e-3)", "seed": "--seed", "time": "--time-limit"}
"""The parameters that replace options set by ronda, keyed by a word in the option's name."""

_KINDS = {bool: "true or false", int: "a whole number", float: "a number"}
"""The words for values of options, keyed by the type of their defaults."""


def bare(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with ``NAME`` instead of ``SOLVER.NAME`` as keys."""
    return {key.partition(".")[2]: value for key, value in options.items()}


def _like(value: Any, default: Any) -> bool:
    """Return whether a value has the type of a default; values of enumerations are words."""
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, float | int)
    return isinstance(value, int if isinstance(default, int) else str)


ROOM, EXTRA = "ronda.solvers.exact", "pip install 'ronda[solvers]'"


@cache
def cbc_program() -> str | None:
    """Return the path of the program ``cbc``, or of the copy in PuLP's wheel, or None."""
    program = shutil.which("cbc")
    if program is None and find_spec("pulp") is not None:
        from pulp.apis.coin_api import pulp_cbc_path

        program = shutil.which(pulp_cbc_path)
    return program


def _of_pyomo(
    through: str, needs: str, install: str, *packages: str, square_s: float = 0.0
) -> Solver:
    lacks, packages = ("warm start", "incumbents", "nodes"), ("pyomo", *packages)
    return Solver(f"{ROOM}.by_pyomo", needs, packages, install, lacks, through, square_s)


MIP = {
    "highs": Solver(f"{ROOM}.highs", "highspy", ("highspy",), "pip install ronda"),
    # Pyomo 6.10 takes 0.8 s to translate 9,400 options for SCIP, and 12 s for 38,000.
    "scip": _of_pyomo("scip_direct", "pyscipopt", EXTRA, "pyscipopt", square_s=3e-8),
    "cbc": _of_pyomo("cbc", "pulp", EXTRA, "pulp"),
    "gurobi": _of_pyomo("gurobi_direct", "gurobipy", "pip install gurobipy, and a licence"),
    "cplex": _of_pyomo("cplex_direct", "cplex", "pip install cplex, and a licence"),
    "glpk": _of_pyomo("glpk", "", "the program glpsol"),
}
"""The solvers of mixed-integer programs, keyed by their names in `milp(solver=…)`."""

CP_SAT = "cp-sat"
"""OR-Tools' constraint solver, which knows only whole numbers, so coefficients are rounded."""

SOLVERS = MIP | {
    CP_SAT: Solver(
        f"{ROOM}.cp_sat",
        "ortools.sat.python.cp_model",
        ("ortools",),
        EXTRA,
        ("continuous",),
    )
}
"""All solvers of models, keyed by name."""


def find_solver(name: str, place: str, known: Collection[str] = tuple(MIP)) -> Solver:
    """Return an installed solver; otherwise raise InputError, which lists the installed solvers."""
    if name in known and SOLVERS[name].installed:
        return SOLVERS[name]
    said = f"no solver of {', '.join(known)}"
    if name in known:
        said = f"which is not installed ({SOLVERS[name].install})"
    there = ", ".join(each for each in known if SOLVERS[each].installed)
    raise InputError(place, f"{name!r}, {said}", f"one that is installed: {there or 'none is'}")


def _available(through: str) -> bool:
    import pyomo.environ as pyo

    return bool(pyo.SolverFactory(through).available(exception_flag=False))
