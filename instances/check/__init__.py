"""Is an answer right? Checked by arithmetic of its own.

Here stand the checker of plans and schedules, its physics and its books. It shares the data types
with the solvers and nothing else: no formula is imported from `ronda.formulations`.
"""
