"""The round as rows: as arrays, as a Pyomo model, and why it cannot be met.

Here each constraint family is stated. Nothing is solved: `ronda.solvers.exact` and
`ronda.solvers.prices` do that. Which nodes a job gets is in `ronda.formulations.placement`.
``rows.separable`` and ``pyomo_model``, which loads Pyomo, are imported by module path.
"""

from ronda.formulations.allocation.case import Case, make_case, restrict
from ronda.formulations.allocation.rows import Conflict, shortages
from ronda.formulations.allocation.separable import Separable, Units, normalise, regrets, surpluses
from ronda.formulations.allocation.waking import Ready, begin, ready, with_waking

__all__ = [
    "Case",
    "Conflict",
    "Ready",
    "Separable",
    "Units",
    "begin",
    "make_case",
    "normalise",
    "ready",
    "regrets",
    "restrict",
    "shortages",
    "surpluses",
    "with_waking",
]
