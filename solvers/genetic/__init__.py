"""Genetic search over per-job choices, on DEAP.

Here stand the search (`engine`) and its operators. What an individual means is in
`ronda.formulations.genes`. Both load DEAP and are imported by module path.
"""
