"""Genetic search over per-job choices, on DEAP.

Here stand the search (`engine`), its generations (`evolution`), operators, repair and local search.
What an individual means is in `ronda.formulations.genes`; the operators of ONES, in
`ronda.solvers.ones`. `engine` and `evolution` load DEAP and are imported by module path.
"""
