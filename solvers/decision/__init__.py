"""From a round to a plan: what all optimising policies share.

Here a question (round, objective) becomes a choice of options, a placement on nodes, a plan, and an
explanation. The engines are in `ronda.solvers.exact`, `ronda.solvers.prices` and
`ronda.solvers.genetic`.
"""
