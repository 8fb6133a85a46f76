"""Policies, one file each, in rooms by what they decide.

`ronda.solvers.registry` finds them by name and makes them from their parameters. Engines and rules
that several policies share stand in the other rooms of `ronda.solvers`.
"""
