"""What completion time an energy budget buys: sweeps, curves, bounds, prices and their report.

How runs are carried out is in `ronda.bench.runs`, what a sweep multiplies out to in
`ronda.bench.suites`. `figure` loads matplotlib and is imported by its path.
"""
