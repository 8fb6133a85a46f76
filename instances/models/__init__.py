"""The models of one job on one configuration: its speed, power and efficiency.

Here stand throughput, power, statistical efficiency, memory and learning curves, as functions of
GPUs, nodes, clock and batch, and the speed of models that share a GPU. The options of a round are
made from them in `ronda.formulations.options`; they are fitted in `ronda.solvers.fitting`.
"""
