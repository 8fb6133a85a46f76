"""Published systems that carry more than a rule from round to round: Gavel, Shockwave.

A policy is found by its name (`ronda.solvers.registry`).
"""
