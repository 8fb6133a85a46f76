"""How fast, how hungry, how good: one job on one configuration.

Here stand throughput, power, statistical efficiency, memory and learning curves, as functions of
GPUs, nodes, clock and batch, and the speed of models that share a GPU. What a round makes of them
is in `ronda.formulations.options`; fitting them to measurements, in `ronda.solvers.fitting`.
"""
