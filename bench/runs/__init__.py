"""Runs: each in a process of its own, here or on a Dask cluster; recorded, resumed and compared.

Here stand cases, workers, results and where they are kept; what is drawn or written of them is in
`ronda.bench.figures`. `on_dask` loads Dask and is imported by its path; `single` and `runner`
are what a run's process needs.
"""
