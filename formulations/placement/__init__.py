"""Which nodes a job gets.

Here options become placements: buddy blocks, whole nodes, racks, few moves, and why a job found no
room. Which option a job gets is decided before (`ronda.solvers.decision`).
"""
