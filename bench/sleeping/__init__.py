"""Controllers of sleep side by side on one demand series: a table, and pictures.

What they decide, and what comes of it, is in `ronda.systems.helios`.
`figure` loads matplotlib and is imported by its path.
"""
