"""Policies that save energy: milp-energy, BASE+zeus, race-to-idle.

A policy is found by its name (`ronda.solvers.registry`). Models of power are in
`ronda.instances.models`; the power of nodes is in `ronda.formulations.watts`.
"""
