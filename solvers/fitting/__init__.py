"""The fitting of models of speed and power to measurements.

This package turns a table of measurements into a profile with errors. The models are defined in
`ronda.instances.models`, and the record of a fit in `ronda.instances.models.fits`. The package
exports nothing, so that pandas and SciPy load late:
``from ronda.solvers.fitting.fit import fit_table``.
"""
