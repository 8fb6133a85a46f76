"""What if a round were another one: changes, and what each of them would do to its plan.

Here stand the changes (`changes`), policies that value them on the scale of the round as it is
(`frozen`), a new job at each of its sizes (`sizes`), and the answer (`answer`).
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
