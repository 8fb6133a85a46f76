"""Speed of ronda itself, over size: ``python -m ronda.bench.speed CASE``.

A case times one thing (`cases`); each measurement has a process of its own and prints one JSON
line. How good plans are is in `ronda.bench.study`. `reference` is the round that the price engine
is timed on, and `certificate` proves its answers independently. Everything is imported by module
path, as cases load solvers.
"""

__all__: list[str] = []
