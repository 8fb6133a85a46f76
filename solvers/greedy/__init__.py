"""Rules that build a plan step by step.

Here stand climbs over GPU counts, and the list of jobs that rigid policies share. Which rule a
policy follows is in `ronda.solvers.policies`.
"""

from ronda.solvers.greedy.policy import Clocked
from ronda.solvers.greedy.room import Room, start_in_order

__all__ = ["Clocked", "Room", "start_in_order"]
