"""The allocation model of a round, in arrays and in Pyomo, and the reasons for its infeasibility.

This package states each constraint family; `ronda.solvers.exact` and `ronda.solvers.prices` solve
the model, and `ronda.formulations.placement` chooses the nodes of jobs.
"""
