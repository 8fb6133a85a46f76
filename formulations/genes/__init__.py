"""Genomes, which choose a row of the round's separable problem for each job, and costs of moves.

The search is in `ronda.solvers.genetic`.
"""
