"""The options of each job of a round, as one table.

This package turns a round into an `OptionTable`, with applications on each pool, dominance, ladders
of GPUs and clocks, and the rows of running jobs. `ronda.formulations.objectives` values options.
"""
