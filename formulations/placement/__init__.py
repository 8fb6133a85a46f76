"""Which nodes a job gets: blocks, whole nodes, racks, few moves, and why a job found no room.

Which option a job gets is decided before (`ronda.solvers.decision`); options and nodes in one model
are in `ronda.formulations.positions`.
"""

from ronda.formulations.placement.nodes import (
    FreeList,
    Placement,
    consolidate,
    free_lists,
    most_free,
)
from ronda.formulations.placement.placer import Placed, place, unchanged
from ronda.formulations.placement.reasons import lack_of_room, why_unplaced

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
