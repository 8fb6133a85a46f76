"""Plan quality as a function of time: traces of runs on rounds, their table and their figure.

`ronda.bench.runs` carries out the runs. `figure` loads matplotlib, so import it by its full path.
"""
