"""A comparison of sleep controllers on one demand series: a table, and pictures.

Their decisions and the outcomes are computed in `ronda.systems.helios`.
"""
