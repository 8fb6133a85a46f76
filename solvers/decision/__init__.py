"""The steps from a round to a plan that optimising policies share.

This package turns a question (round, objective) into a choice of options, a placement on nodes, a
plan, and an explanation. The engines are in `ronda.solvers.exact`, `ronda.solvers.prices` and
`ronda.solvers.genetic`.
"""
