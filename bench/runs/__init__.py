"""Runs: each in a process of its own, here or on a Dask cluster; recorded, resumed and compared.

Here stand cases, workers, results and where they are kept; what is drawn or written of them is in
`ronda.bench.figures`. The modules `cluster` and `on_dask` load Dask and are imported by their
path, `single` and `runner` are what a run's process needs.
"""
