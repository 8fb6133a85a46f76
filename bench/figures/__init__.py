"""Tables and pictures of runs, in one style.

What one kind of study says with them stays in its room. Only tables are exported here: the other
modules load matplotlib and are imported by their path, as is `comparison`.
"""

from ronda.bench.figures.table import (
    Best,
    Table,
    count,
    joules,
    milliseconds,
    percent,
    seconds,
    write_tables,
)

__all__ = [
    "Best",
    "Table",
    "count",
    "joules",
    "milliseconds",
    "percent",
    "seconds",
    "write_tables",
]
