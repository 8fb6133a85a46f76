"""Errors that a user can act on, and texts from data in one line of limited length.

Among them are errors about packages that only an extra of ronda installs.
"""

from importlib.util import find_spec
from types import MappingProxyType


def printable(text: str) -> str:
    r"""Return a text with invisible characters as in Python, ``\x1b`` or ``\u202e``.

    Control characters steer a terminal and end lines; marks of direction let a text be read as
    another one.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def short(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters, its middle left out if it is longer."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[head + 1 - limit :]}"


class RondaError(Exception):
    """Base of every error that ronda raises on purpose.

    The command line prints ``str(error)`` as one line and exits with ``exit_code``.
    """

    exit_code = 1


class InputError(RondaError):
    """Something that the user gave (a file, an option, a value) cannot be used.

    Long parts are cut in the middle.

    Parameters
    ----------
    place
        A file, and inside it a JSON path, a row, or the name of an option.
    found
        The value at that place.
    expected
        The expected value, or a remedy.
    """

    exit_code = 2

    def __init__(self, place: str, found: str, expected: str) -> None:
        self.place, self.found = short(place, 500), short(found, 2000)
        self.expected = short(expected, 500)
        super().__init__(f"{self.place}: found {self.found}; expected {self.expected}")


class InterruptedRunError(RondaError):
    """The user stopped a command; the message says how it goes on, if it can."""

    exit_code = 130  # as shells have it: 128 + SIGINT


EXTRAS = MappingProxyType(
    {
        "dask": "dask",
        "distributed": "dask",
        "h11": "serve",
        "itables": "report",
        "jinja2": "report",
        "lightgbm": "predict",
        "matplotlib": "plot",
        "ortools": "solvers",
        "pandas": "traces",
        "plotly": "report",
        "prometheus_client": "serve",
        "pulp": "solvers",
        "pyarrow": "parquet",
        "pyscipopt": "solvers",
        "uvicorn": "serve",
    }
)
"""The extra by which each package is installed."""


def installed(package: str) -> bool:
    """Return whether a package is installed, without loading it."""
    return find_spec(package) is not None


def need(place: str, *packages: str) -> None:
    """Refuse, before any work, a command that needs packages which are not installed."""
    for package in packages:
        if not installed(package):
            raise _lacking(package, place)


def explained(error: ModuleNotFoundError) -> InputError | None:
    """Return the error for an import that failed, or None if no extra would have installed it."""
    package = (error.name or "").partition(".")[0]
    return _lacking(package, "this command") if package in EXTRAS else None


def _lacking(package: str, place: str) -> InputError:
    extra = EXTRAS[package]
    found = f"no package {package}"
    return InputError(place, found, f"the extra {extra}: pip install 'ronda[{extra}]'")
