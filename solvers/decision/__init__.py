"""From a round to a plan: the way that optimising policies share.

Here a question (round, objective) becomes a choice of options, a placement on nodes, a plan, and an
explanation. The engines are in `ronda.solvers.exact`, `ronda.solvers.prices` and
`ronda.solvers.genetic`.
"""
