"""Published systems that carry more than a rule from round to round: ONES, Gavel, Shockwave.

A policy is found by its name (`ronda.solvers.registry`). What happens inside a system is in a room
of its own, such as `ronda.solvers.ones`.
"""
