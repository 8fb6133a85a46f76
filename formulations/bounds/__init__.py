"""Lower bounds that no schedule can beat.

Here stand clairvoyant lower bounds on mean JCT, makespan and energy of a whole instance. The bound
of a single round is the solver's (`ronda.solvers.prices`).
"""
