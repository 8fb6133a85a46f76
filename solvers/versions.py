"""The versions of ronda and of its solvers, for records and bug reports."""

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
    """Return the installed versions of ronda and of the packages of solvers."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
