"""The placement of jobs on nodes with few moves, and the reasons why a job has no room.

`ronda.solvers.decision` chooses the options of jobs first; `ronda.formulations.positions` has a
joint model of options and nodes.
"""

from ronda.formulations.placement.nodes import (
    FreeList,
    Placement,
    consolidate,
    free_lists,
    most_free,
)
from ronda.formulations.placement.reasons import lack_of_room, why_unplaced
from ronda.formulations.placement.requests import Placed, place, unchanged

__all__ = [
    "FreeList",
    "Placed",
    "Placement",
    "consolidate",
    "free_lists",
    "lack_of_room",
    "most_free",
    "place",
    "unchanged",
    "why_unplaced",
]
