"""What completion time an energy budget buys: sweeps, curves, bounds, prices and their report.

How runs are carried out is in `ronda.bench.runs`. `figure` loads matplotlib and is imported by its
path.
"""

from ronda.bench.frontier.bound import kept_steps
from ronda.bench.frontier.curves import COMPARATORS
from ronda.bench.frontier.report import Report, make_report
from ronda.bench.frontier.sweep import (
    belonging,
    parse_budgets,
    parse_changes,
    parse_comparators,
    sweep_cases,
)
from ronda.bench.frontier.tables import as_json, tables_of

__all__ = [
    "COMPARATORS",
    "Report",
    "as_json",
    "belonging",
    "kept_steps",
    "make_report",
    "parse_budgets",
    "parse_changes",
    "parse_comparators",
    "sweep_cases",
    "tables_of",
]
