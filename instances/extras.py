"""Packages that only an extra of ronda brings, and what is said where one is missing."""

from importlib.util import find_spec
from types import MappingProxyType

from ronda.instances.errors import InputError

EXTRAS = MappingProxyType(
    {
        "dask": "dask",
        "distributed": "dask",
        "h11": "serve",
        "lightgbm": "predict",
        "matplotlib": "plot",
        "ortools": "solvers",
        "pandas": "traces",
        "prometheus_client": "serve",
        "pulp": "solvers",
        "pyscipopt": "solvers",
        "uvicorn": "serve",
    }
)
"""The extra by which each package is installed."""


def installed(package: str) -> bool:
    """Return whether a package is there, without loading it."""
    return find_spec(package) is not None


def need(place: str, *packages: str) -> None:
    """Refuse, before any work, what needs packages that are not there."""
    for package in packages:
        if not installed(package):
            raise _lacking(package, place)


def explained(error: ModuleNotFoundError) -> InputError | None:
    """Return what to say of an import that failed; None if no extra would have brought it."""
    package = (error.name or "").partition(".")[0]
    return _lacking(package, "this command") if package in EXTRAS else None


def _lacking(package: str, place: str) -> InputError:
    extra = EXTRAS[package]
    found = f"no package {package}"
    return InputError(place, found, f"the extra {extra}: pip install 'ronda[{extra}]'")
