"""The independent checker of plans and schedules, with arithmetic of its own.

This package holds its rules, its physics and its incremental form. It shares only data types with
the solvers and imports no formula from `ronda.formulations`.
"""
