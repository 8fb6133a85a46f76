"""Genetic search over per-job choices, on DEAP.

Here stand the search (`engine`) and its operators. Individuals are defined in
`ronda.formulations.genes`. Both load DEAP and are imported by module path.
"""
