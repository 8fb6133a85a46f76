"""The solution of separable problems by prices, with a certificate.

A round becomes such a problem in `ronda.formulations.allocation`. The entry is
`engine.solve_separable` with a `Search`. All modules load HiGHS.
"""
