"""Greedy rules that build a plan step by step.

This package has climbs over GPU counts, and the ordered starts that rigid policies share.
`ronda.solvers.policies` says which rule a policy follows.
"""

from ronda.solvers.greedy.policy import Clocked
from ronda.solvers.greedy.room import Room, start_in_order

__all__ = ["Clocked", "Room", "start_in_order"]
