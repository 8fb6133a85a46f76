"""Every way to run each job of a round, as one table.

Here a round becomes an `OptionTable`: what applications offer on each pool, dominance, ladders of
GPUs and clocks, and the rows of running jobs. What an option is worth is in
`ronda.formulations.objectives`.
"""

from ronda.formulations.options.application import Application, application_of, requested_options
from ronda.formulations.options.build import build as build_options
from ronda.formulations.options.table import OptionTable, option, rows_of, running_rows

__all__ = [
    "Application",
    "OptionTable",
    "application_of",
    "build_options",
    "option",
    "requested_options",
    "rows_of",
    "running_rows",
]
