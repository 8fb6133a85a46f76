"""ONES between its ticks, one idea a module: from a round to what is deployed.

The genome is in `ronda.formulations.ones`, the policy in `ronda.solvers.policies.systems`.
"""

from ronda.solvers.ones.tick import Tick, generation

__all__ = ["Tick", "generation"]
