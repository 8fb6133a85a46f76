"""Schedules in the formats of other tools: Perfetto, CSV, the Standard Workload Format, Batsim.

Each format has a module that makes its text, and `formats` lists all formats. Figures and tables of
runs are in `ronda.bench.figures`; `ronda.solvers.exact.model_file` writes the model of a round.
"""
