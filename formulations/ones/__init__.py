"""The genome of ONES, its limits on batch sizes, and its scores.

Here stands what the paper and artifact of ONES define about a single schedule. What happens between
ticks is in `ronda.solvers.ones`.
"""
