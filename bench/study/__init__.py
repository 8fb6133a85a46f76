"""The experiments of the docs: ``python -m ronda.bench.study NAME``.

A study is one file with its cases, its measurement, its table and its picture. What all of them do
alike is in `harness`. Comparisons that users make of their own instances are no studies: these are
`ronda compare` and `ronda frontier` (`ronda.bench.runs`, `ronda.bench.frontier`). Everything is
imported by module path, as studies load solvers and pandas.
"""

__all__: list[str] = []
