"""Solvers on the same rounds: ``python -m ronda.bench.study solvers``.

What a solver can do is in `ronda.solvers.exact.catalogue`. Nothing is exported: the study is
started by name.
"""

__all__: list[str] = []
