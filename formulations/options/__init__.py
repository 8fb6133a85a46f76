"""Every way to run each job of a round, as one table.

Here a round becomes an `OptionTable`: applications on each pool, dominance, ladders of GPUs and
clocks, and the rows of running jobs. The values of options are in `ronda.formulations.objectives`.
"""
