"""The nodes of jobs: blocks, whole nodes, racks, few moves, and the reasons why a job has no room.

The options of jobs are chosen before (`ronda.solvers.decision`); the model of options and nodes
together is in `ronda.formulations.positions`.
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
