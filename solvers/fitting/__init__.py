"""Models of speed and power from measurements.

Here a table of measurements becomes a profile with its errors. The models are defined in
`ronda.instances.models`, the record of a fit in `ronda.instances.models.fits`. Nothing is exported,
as pandas and SciPy load late: ``from ronda.solvers.fitting.fit import fit_table``.
"""
