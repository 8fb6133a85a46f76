"""A round as an allocation model, in arrays and in Pyomo, and the reasons why it has no answer.

Here each constraint family is stated; `ronda.solvers.exact` and `ronda.solvers.prices` solve the
model. The nodes of jobs are chosen in `ronda.formulations.placement`.
"""
