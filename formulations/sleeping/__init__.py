"""Which idle nodes sleep: the rule of standby (ski rental), CES, and lot sizing.

`standby` decides in rounds, by watts; `ces`, `lot_sizing` (all is known) and `two_stage` (quantiles
are) decide on a demand series, and `outcome` says what comes of it. What nodes of a round draw is
in `ronda.formulations.watts`; forecasts are in `ronda.formulations.prediction`.
"""

from ronda.formulations.sleeping.ces import RULES, WARM_UP, CesRule, published, vanilla
from ronda.formulations.sleeping.lot_sizing import build, cost, least_cost
from ronda.formulations.sleeping.outcome import NodeDraw, Outcome
from ronda.formulations.sleeping.standby import break_even_s, rest, spare_of, stand_by, standing
from ronda.formulations.sleeping.two_stage import build_two_stage, costs, roll, wanted, weights

__all__ = [
    "RULES",
    "WARM_UP",
    "CesRule",
    "NodeDraw",
    "Outcome",
    "break_even_s",
    "build",
    "build_two_stage",
    "cost",
    "costs",
    "least_cost",
    "published",
    "rest",
    "roll",
    "spare_of",
    "stand_by",
    "standing",
    "vanilla",
    "wanted",
    "weights",
]
