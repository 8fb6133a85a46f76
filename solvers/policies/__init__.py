"""Policies, each in one file with its rule, in rooms by what they decide.

`ronda.solvers.registry` finds them by name and makes them from their parameters. Engines that
several policies share stand in the other rooms of `ronda.solvers`.
"""
