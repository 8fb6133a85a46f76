"""The trade-off between completion time and energy budget: sweeps, curves, bounds, prices, reports.

`ronda.bench.runs` carries out the runs, and `ronda.bench.suites` expands a sweep into runs.
`figure` loads matplotlib, so import it by its full path.
"""
