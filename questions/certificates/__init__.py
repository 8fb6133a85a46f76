"""Round certificates: how good a plan of one round is, for readers who trust no solver.

`certify.py` makes a certificate with prices of the engine; `verify.py` proves from the files alone
that the plan is feasible and that no plan is worth more than the bound. Bounds of whole horizons
are in `ronda.formulations.bounds`.
"""
