"""What-if questions: changes to a round, and the effect of each on its plan.

The modules are the changes (`changes`), policies that value plans on the scale of the unchanged
round (`frozen`), a new job at each of its sizes (`sizes`), and the answer (`answer`).
"""

from ronda.questions.whatif.changes import (
    Change,
    EnergyShare,
    Gpus,
    NewJob,
    PowerCap,
    WithoutJob,
    WithoutNode,
    WithoutRack,
)

__all__ = [
    "Change",
    "EnergyShare",
    "Gpus",
    "NewJob",
    "PowerCap",
    "WithoutJob",
    "WithoutNode",
    "WithoutRack",
]
