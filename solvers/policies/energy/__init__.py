"""Policies that choose clocks or sleep: PowerFlow, milp-energy, Zeus, race-to-idle.

A policy is found by its name (`ronda.solvers.registry`). Models of power are in
`ronda.formulations.models`, the power of nodes in `ronda.formulations.watts`.
"""
