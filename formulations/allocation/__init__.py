"""The round as rows: as arrays, as a Pyomo model, and why it cannot be met.

Here each constraint family is stated. Nothing is solved: `ronda.solvers.exact` and
`ronda.solvers.prices` do that. Which nodes a job gets is in `ronda.formulations.placement`.
"""
