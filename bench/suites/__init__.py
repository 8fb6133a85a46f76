"""Suites: the runs of a comparison and the layout of its table, from a TOML file or options.

This package has the file's schema, the expansion of its lists, and its tables and figure.
`ronda.bench.runs` carries out and records the runs.
"""
