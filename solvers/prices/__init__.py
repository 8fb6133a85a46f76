"""A separable problem by prices, with a certificate.

How a round becomes such a problem is in `ronda.formulations.allocation`. Entry:
`engine.solve_separable` with a `search.Search`; imported by module path, as it loads HiGHS.
"""

from ronda.solvers.prices.search import Search

__all__ = ["Search"]
