"""Schedules in the formats of other tools: Perfetto, CSV, the Standard Workload Format, Batsim.

A module a format makes its text, and `formats` knows them all. Figures and tables of runs are in
`ronda.bench.figures`; the model of a round is written by `ronda.solvers.exact.model_file`.
"""
