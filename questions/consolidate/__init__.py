"""Consolidation: which running jobs move, without changing their options, to empty nodes.

Equal nodes and equal jobs are counted together as classes (`holdings`). A Pyomo model decides what
stays and what moves (`model`), and its solution is read as nodes for each job (`read`). Free GPUs
are cut into pieces as in `ronda.formulations.positions`. Starts, stops and changes of size are
decided elsewhere.
"""
