"""Policies that solve each round for an objective: milp, prices, genetic, evolve.

A policy is found by its name (`ronda.solvers.registry`). `ronda.solvers.decision` holds the steps
from a round to a plan that they share. The engines are in packages of their own.
"""
