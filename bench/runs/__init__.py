"""Runs, each in its own process, here or on a Dask cluster: carried out, recorded and resumed.

This package has cases, processes, results and folders; figures and tables are in
`ronda.bench.figures`. `on_dask` loads Dask, so import it by its full path; a run's process imports
`single` and `runner`.
"""
