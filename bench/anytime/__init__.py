"""How good a plan is after how much time: traces of runs on rounds, their table and figure.

How runs are carried out is in `ronda.bench.runs`. `figure` loads matplotlib and is imported by its
path.
"""

from ronda.bench.anytime.table import as_table, lines, times
from ronda.bench.anytime.traces import Trace, cases, references, traces_of

__all__ = ["Trace", "as_table", "cases", "lines", "references", "times", "traces_of"]
