"""Policies, each in a file with its rule, in packages according to their decisions.

`ronda.solvers.registry` finds them by name and makes them from their parameters. Engines that
several policies share are in the other packages of `ronda.solvers`.
"""
