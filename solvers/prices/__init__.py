"""The solution of separable problems by prices, with a certificate.

`ronda.formulations.allocation` turns a round into such a problem. The entry point is
`engine.solve_separable` with a `Search`. All modules load HiGHS.
"""
