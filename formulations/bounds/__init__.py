"""Lower bounds that no schedule can beat.

The package computes clairvoyant lower bounds on mean JCT, makespan and energy of a whole instance.
For a single round, the solver gives the bound (`ronda.solvers.prices`).
"""
