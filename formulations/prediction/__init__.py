"""What is believed of work, progress and demand before it is known, and how it is learnt.

What really happens (`truth`) is known to the driver alone.
"""

from ronda.formulations.prediction.demand import (
    LEVELS,
    Calibration,
    DemandForecast,
    calibration,
    last_value,
    seasonal,
)
from ronda.formulations.prediction.progress import (
    EPOCHS,
    BetaProgress,
    ProgressPredictor,
    finished_rows,
)
from ronda.formulations.prediction.training import Network

__all__ = [
    "EPOCHS",
    "LEVELS",
    "BetaProgress",
    "Calibration",
    "DemandForecast",
    "Network",
    "ProgressPredictor",
    "calibration",
    "finished_rows",
    "last_value",
    "seasonal",
]
