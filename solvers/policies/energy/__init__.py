"""Policies that choose clocks under an energy budget: PowerFlow, milp-energy, Zeus.

A policy is found by its name (`ronda.solvers.registry`). Models of power are in
`ronda.instances.models`, the power of nodes in `ronda.formulations.watts`.
"""
