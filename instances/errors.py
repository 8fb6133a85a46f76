"""Errors that a user can act on, and helpers that make text safe and short for messages.

Some errors concern packages that only an optional extra of ronda installs.
"""

from importlib.util import find_spec
from types import MappingProxyType


def printable(text: str) -> str:
    r"""Return a text with invisible characters escaped as in Python, such as ``\x1b``.

    Control characters can steer a terminal or end a line, and direction marks can disguise a text.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def short(text: str, limit: int) -> str:
    """Return a text shortened to `limit` characters by leaving out its middle."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[head + 1 - limit :]}"


class RondaError(Exception):
    """The base class of every error that ronda raises on purpose.

    The command line prints ``str(error)`` as one line and exits with ``exit_code``.
    """

    exit_code = 1


class InputError(RondaError):
    """An input from the user (a file, an option or a value) that cannot be used.

    The middle of long parts is left out.

    Parameters
    ----------
    place
        A file with a JSON path or a row in it, or the name of an option.
    found
        The value at that place.
    expected
        The expected value or a remedy.
    """

    exit_code = 2

    def __init__(self, place: str, found: str, expected: str) -> None:
        self.place, self.found = short(place, 500), short(found, 2000)
        self.expected = short(expected, 500)
        super().__init__(f"{self.place}: found {self.found}; expected {self.expected}")


class InterruptedRunError(RondaError):
    """An interruption of a command by the user, with a message on how to resume it if possible."""

    exit_code = 130  # like shells: 128 + SIGINT


def refuse_beyond(place: str, value: float, least: float, most: float) -> None:
    """Refuse a number that is out of its range; `most` may be infinite."""
    if not least <= value <= most:
        expected = f"{least:g} or more" if most == float("inf") else f"{least:g} to {most:g}"
        raise InputError(place, f"{value:g}", expected)


EXTRAS = MappingProxyType(
    {
        "dask": "dask",
        "distributed": "dask",
        "h11": "serve",
        "itables": "report",
        "jinja2": "report",
        "lightgbm": "predict",
        "matplotlib": "plot",
        "mcp": "mcp",
        "ortools": "solvers",
        "pandas": "traces",
        "plotly": "report",
        "prometheus_client": "serve",
        "pulp": "solvers",
        "pyarrow": "parquet",
        "pyscipopt": "solvers",
        "uvicorn": "serve",
        "yaml": "kubernetes",
    }
)
"""The extra by which each package is installed."""


def installed(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    return find_spec(package) is not None


def need(place: str, *packages: str) -> None:
    """Raise an error, before any work, if a command needs packages that are not installed."""
    for package in packages:
        if not installed(package):
            raise _lacking(package, place)


def explained(error: ModuleNotFoundError) -> InputError | None:
    """Return the error for a failed import, or None if no extra installs the missing package."""
    package = (error.name or "").partition(".")[0]
    return _lacking(package, "this command") if package in EXTRAS else None


def _lacking(package: str, place: str) -> InputError:
    extra = EXTRAS[package]
    found = f"no package {package}"
    return InputError(place, found, f"the extra {extra}: pip install 'ronda[{extra}]'")
