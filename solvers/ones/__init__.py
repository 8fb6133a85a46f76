"""ONES between its ticks, one idea a module.

``board``: the GPUs and jobs of a pool that one genome decides. ``ways``: how a job may run there.
``memory``: what is carried from tick to tick. ``watch``: samples, epochs and losses seen since the
last tick. ``learn``: the predictor of progress. ``state``: limits of the jobs in this tick, each
with its seat on the board. ``tick``: one generation. ``deploy``: when the best genome is run.
``power``: what of it the limits on power allow.

The genome is in `ronda.formulations.ones`, the policy in `ronda.solvers.policies.systems`.
"""

from ronda.solvers.ones.tick import Tick, generation

__all__ = ["Tick", "generation"]
