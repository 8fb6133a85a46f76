"""Models that share a GPU: which may be fused, how long arrays take, and how many fit.

HFTA (Wang et al., MLSys 2021) trains k models of one shape as one process. Here stand its classes,
memory and time, next to those of packing, slices and turns; and arrays of a batch of jobs, and
which run where as a MILP. Not exported, as they load networkx and Pyomo: ``classes``, ``model``.
"""

from ronda.formulations.fusion.arrays import Arrangement, Array, Batch, Case, arrays_of
from ronda.formulations.fusion.memory import most_models, need_gib, two_point
from ronda.formulations.fusion.time import speed_up, step_s

__all__ = [
    "Arrangement",
    "Array",
    "Batch",
    "Case",
    "arrays_of",
    "most_models",
    "need_gib",
    "speed_up",
    "step_s",
    "two_point",
]
