"""Plans as genomes: a row of the round's separable problem for each job, and the cost of moves.

The search is in `ronda.solvers.genetic`.
"""
