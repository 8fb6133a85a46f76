"""Versions of what decides, for records and bug reports."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    "ronda",
    "numpy",
    "scipy",
    "msgspec",
    "pyomo",
    "highspy",
    "deap",
    "lightgbm",
    "pyscipopt",
    "pulp",
    "ortools",
)


@cache
def versions() -> dict[str, str]:
    """Return the installed version of ronda and of each package that a solver rests on."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
