"""Policies that solve each round for an objective: milp, prices, genetic, evolve.

A policy is found by its name (`ronda.solvers.registry`). What they share on the way from a round to
a plan is in `ronda.solvers.decision`, the engines in rooms of their own.
"""
