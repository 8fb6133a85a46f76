"""Every way to run each job of a round, as one table.

Here a round becomes an `OptionTable`: what applications offer on each pool, dominance, ladders of
GPUs and clocks, and the rows of running jobs. What an option is worth is in
`ronda.formulations.objectives`.
"""
