"""Policies, one file each. `ronda.solvers.registry` finds them by name."""
