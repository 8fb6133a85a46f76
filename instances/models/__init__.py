"""Models of one job on one configuration: its speed, power and efficiency.

This package models throughput, power, statistical efficiency, memory and learning curves as
functions of GPUs, nodes, clock and batch, and the speed of models that share a GPU. The options of
a round are made from them in `ronda.formulations.options`. Models are fitted in
`ronda.solvers.fitting`.
"""
