"""The independent checker of plans and schedules, with arithmetic of its own.

Here stand its rules, its physics and its incremental form. It shares the data types with the
solvers and nothing else: no formula is imported from `ronda.formulations`.
"""
