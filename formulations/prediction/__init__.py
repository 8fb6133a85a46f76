"""What is believed of work and progress before it is known, and how it is learnt.

What really happens (`truth`) is known to the driver alone.
"""

from ronda.formulations.prediction.progress import (
    EPOCHS,
    BetaProgress,
    ProgressPredictor,
    finished_rows,
)
from ronda.formulations.prediction.training import Network

__all__ = [
    "EPOCHS",
    "BetaProgress",
    "Network",
    "ProgressPredictor",
    "finished_rows",
]
