"""Genetic search over per-job choices, on DEAP.

The package holds the search (`engine`) and its operators (`operators`). Individuals are defined in
`ronda.formulations.genes`. Both modules load DEAP, so import them by module path.
"""
