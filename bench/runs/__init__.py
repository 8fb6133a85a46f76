"""Runs: each in a process of its own, here or on a Dask cluster; recorded, resumed and compared.

Cases, processes, results and folders stand here, their figures and tables in
`ronda.bench.figures`. `on_dask` loads Dask and is imported by its path; a run's process needs
`single` and `runner`.
"""
