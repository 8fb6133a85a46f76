"""Tables and pictures of runs, in one style; what one kind of study says with them is in its room.

Other modules than `table` load matplotlib and are imported by their path.
"""

from ronda.bench.figures.table import Best, Table, write_tables

__all__ = ["Best", "Table", "write_tables"]
