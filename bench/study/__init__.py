"""The experiments of the docs: ``python -m ronda.bench.study NAME``.

A study is one file with its cases, its measurement, its table and its picture. What all of them do
alike is in `harness`. Comparisons that users make of their own instances are no studies: these are
`ronda compare` and `ronda frontier` (`ronda.bench.runs`, `ronda.bench.frontier`). Studies are
imported by module path, as they load solvers.
"""

from ronda.bench.study.harness import Folder, Line, study

__all__ = ["Folder", "Line", "study"]
