"""Which idle nodes sleep: the rule of standby (ski rental), CES, and lot sizing.

`standby` decides in rounds, by watts; `ces` and `lot_sizing` decide on a demand series, and
`outcome` says what comes of it. What sleeping and waking draw in a round is in
`ronda.formulations.watts`; forecasts are in `ronda.formulations.prediction`.
"""

from ronda.formulations.sleeping.ces import RULES, WARM_UP, CesRule, published, vanilla
from ronda.formulations.sleeping.lot_sizing import build, cost, least_cost
from ronda.formulations.sleeping.outcome import NodeDraw, Outcome
from ronda.formulations.sleeping.standby import break_even_s, rest, spare_of, stand_by, standing

__all__ = [
    "RULES",
    "WARM_UP",
    "CesRule",
    "NodeDraw",
    "Outcome",
    "break_even_s",
    "build",
    "cost",
    "least_cost",
    "published",
    "rest",
    "spare_of",
    "stand_by",
    "standing",
    "vanilla",
]
