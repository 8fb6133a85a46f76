"""Models that share a GPU: which may be fused, how long arrays take, and how many fit.

HFTA (Wang et al., MLSys 2021) trains k models of one shape as one process. Here stand its classes,
memory and time, beside those of packing, slices and turns, and the waves of its tuner HFHT. Not
exported, as it loads networkx: ``classes``.
"""

from ronda.formulations.fusion.memory import most_models, need_gib, two_point
from ronda.formulations.fusion.time import speed_up, step_s
from ronda.formulations.fusion.waves import Wave, hyperband, random_search, tuning_s

__all__ = [
    "Wave",
    "hyperband",
    "most_models",
    "need_gib",
    "random_search",
    "speed_up",
    "step_s",
    "tuning_s",
    "two_point",
]
