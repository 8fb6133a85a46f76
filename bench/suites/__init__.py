"""Suites: what a comparison runs, and how its table is arranged, as a TOML file or by options.

Here is the file's schema, what its lists multiply out to, and the tables and the figure that it
asks for. How runs are carried out and recorded is in `ronda.bench.runs`.
"""
