"""Policies for searches for hyper-parameters: which trial runs next, and which is given up.

Hermes, round-robin and SLAQ order trials; ASHA, Hyperband and HyperSched stop them early; `sweep`
is ronda's own. What they order trials by is in `ronda.formulations.sweeps`. Jobs of no sweep come
first in all of them, in order of submission.
"""
