"""Populations of plans as arrays, for genetic search.

Here stand the genes of a round, their values, limits and moves, for all individuals at once. The
search itself is in `ronda.solvers.genetic`; the genome of ONES, in `ronda.formulations.ones`.
"""
