"""Speed of ronda itself, over size: ``python -m ronda.bench.speed CASE``.

A case times one thing (`cases`); each measurement has a process of its own and prints one JSON
line. How good plans are is in `ronda.bench.study`; `reference` is the round that the price engine
is timed on, and `certificate` proves its answers independently. Cases are imported by module path,
as they load solvers.
"""

from ronda.bench.speed.reference import reference as reference_round

__all__ = ["reference_round"]
