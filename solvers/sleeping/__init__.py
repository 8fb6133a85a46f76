"""Controllers of sleep on a demand series: how many nodes are awake, step by step.

Their rules and models are in `ronda.formulations.sleeping`, forecasts in
`ronda.formulations.prediction`; this room joins them, by name and parameters. Which nodes of a
round sleep, beside jobs, is decided by policies.
"""

from ronda.solvers.sleeping.controllers import (
    CONTROLLERS,
    Ces,
    Control,
    Milp,
    Oracle,
    Vanilla,
    controller,
)

__all__ = ["CONTROLLERS", "Ces", "Control", "Milp", "Oracle", "Vanilla", "controller"]
