"""Genetic search over per-job choices, on DEAP.

Here stand generations, operators, repair and local search. What an individual means is in
`ronda.formulations.genes`; the operators of ONES, in `ronda.solvers.ones`.
"""
