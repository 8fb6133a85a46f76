"""A separable problem by prices, with a certificate.

How a round becomes such a problem is in `ronda.formulations.allocation`. Entry:
`engine.solve_separable` with a `Search`. All of it loads HiGHS.
"""
