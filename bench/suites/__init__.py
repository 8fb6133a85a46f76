"""Suites: what a comparison runs, and how its table is arranged, as a TOML file or by options.

Here is the file's schema, what its lists multiply out to, and the tables and the figure that it
asks for. How runs are carried out and recorded is in `ronda.bench.runs`.
"""

from ronda.bench.suites.cells import expand
from ronda.bench.suites.suite import Suite, read
from ronda.bench.suites.tables import arrange, draw, usual

__all__ = ["Suite", "arrange", "draw", "expand", "read", "usual"]
