"""Models that share a GPU: which may be fused, how long arrays take, and how many fit.

HFTA (Wang et al., MLSys 2021) trains k models of one shape as one process. Here stand its classes,
memory and time, beside those of packing, slices and turns; the waves of its tuner HFHT; and
arrays of a batch of jobs, and which run where as a MILP. Not exported, as they load networkx and
Pyomo: ``classes``, ``model``.
"""

from ronda.formulations.fusion.arrays import Arrangement, Array, Batch, Case, arrays_of
from ronda.formulations.fusion.memory import most_models, need_gib, two_point
from ronda.formulations.fusion.time import speed_up, step_s
from ronda.formulations.fusion.waves import Wave, hyperband, random_search, tuning_s

__all__ = [
    "Arrangement",
    "Array",
    "Batch",
    "Case",
    "Wave",
    "arrays_of",
    "hyperband",
    "most_models",
    "need_gib",
    "random_search",
    "speed_up",
    "step_s",
    "tuning_s",
    "two_point",
]
