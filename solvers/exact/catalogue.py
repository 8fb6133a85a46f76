"""Which solvers the exact path can use by name, what each can do, and which are installed.

Code asks for a `Feature`, never for a name. Whatever a solver does not tell is left out of its
outcome. This module loads no solver.
"""

import importlib
from collections.abc import Collection
from dataclasses import dataclass
from enum import Flag, auto
from importlib.util import find_spec
from typing import Any

from ronda.instances.errors import InputError


class Feature(Flag):
    """What a solver can do, through our interface to it."""

    NONE = 0
    WARM_START = auto()  # it begins with the values that variables have
    INCUMBENTS = auto()  # it tells when it found each solution
    NODES = auto()  # it tells the size of its search tree
    CONTINUOUS = auto()  # variables need not be whole


EVERY = ~Feature.NONE


@dataclass(frozen=True, slots=True)
class Solver:
    """A solver of Pyomo models: ``module.solve(model, deadline=…, gap=…, seed=…, reserve_s=…)``.

    ``needs`` is the Python module without which it is not there; ``packages`` are those that
    records name, and ``install`` says how to get it. With ``through`` Pyomo's own interface of that
    name is used, which `solve` is told as `through`.
    """

    module: str
    needs: str
    packages: tuple[str, ...]
    install: str
    can: Feature
    through: str = ""

    @property
    def installed(self) -> bool:
        """Whether it can be used here."""
        if self.through:
            return _available(self.through)
        if self.module.endswith(".cbc"):
            from ronda.solvers.exact.cbc import executable

            return executable() is not None
        return find_spec(self.needs.partition(".")[0]) is not None

    @property
    def lacks(self) -> list[str]:
        """What it cannot do, in words."""
        missing = EVERY & ~self.can
        return [str(each.name).lower().replace("_", " ") for each in Feature if each in missing]

    def solve(self, model: Any, **search: Any) -> Any:
        """Solve a Pyomo model and load the solution; as `ronda.solvers.exact.highs.solve`."""
        told = {"through": self.through} if self.through else {}
        return importlib.import_module(self.module).solve(model, **search, **told)


ROOM, EXTRA = "ronda.solvers.exact", "pip install 'ronda[solvers]'"


def _of_pyomo(through: str, package: str, install: str) -> Solver:
    return Solver(f"{ROOM}.by_pyomo", package, ("pyomo",), install, Feature.CONTINUOUS, through)


MIP = {
    "highs": Solver(f"{ROOM}.highs", "highspy", ("pyomo", "highspy"), "pip install ronda", EVERY),
    "scip": Solver(f"{ROOM}.scip", "pyscipopt", ("pyomo", "pyscipopt"), EXTRA, EVERY),
    "cbc": Solver(f"{ROOM}.cbc", "pulp", ("pyomo", "highspy", "pulp"), EXTRA, EVERY),
    "gurobi": _of_pyomo("gurobi_direct", "gurobipy", "pip install gurobipy, and a licence"),
    "cplex": _of_pyomo("cplex_direct", "cplex", "pip install cplex, and a licence"),
    "glpk": _of_pyomo("glpk", "", "the program glpsol"),
}
"""Solvers of mixed-integer programs, by the name that `milp(solver=…)` takes."""

CP_SAT = "cp-sat"
"""OR-Tools' constraint solver: whole numbers only, so that coefficients are rounded."""

SOLVERS = MIP | {
    CP_SAT: Solver(
        f"{ROOM}.cp_sat",
        "ortools.sat.python.cp_model",
        ("pyomo", "ortools"),
        EXTRA,
        Feature.WARM_START | Feature.INCUMBENTS | Feature.NODES,
    )
}
"""All solvers of models by name."""


def find(name: str, place: str, known: Collection[str] = tuple(MIP)) -> Solver:
    """Return a solver that is installed; InputError, with those that are, if it is not."""
    if name in known and SOLVERS[name].installed:
        return SOLVERS[name]
    said = f"no solver of {', '.join(known)}"
    if name in known:
        said = f"which is not installed ({SOLVERS[name].install})"
    there = ", ".join(each for each in known if SOLVERS[each].installed)
    raise InputError(place, f"{name!r}, {said}", f"one that is installed: {there or 'none is'}")


def _available(name: str) -> bool:
    """Tell whether Pyomo finds a solver with its licence."""
    import pyomo.environ as pyo

    return bool(pyo.SolverFactory(name).available(exception_flag=False))
