"""A comparison of sleep controllers on one demand series: a table, and pictures.

Their decisions and the outcomes are computed in `ronda.systems.helios`. `figure` loads matplotlib,
so import it by its full path.
"""
