"""How good a plan is after how much time: traces of runs on rounds, their table and figure.

How runs are carried out is in `ronda.bench.runs`. `figure` loads matplotlib and is imported by its
path.
"""
