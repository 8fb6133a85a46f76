"""Any Pyomo model through HiGHS.

Here stand the linear form of a model, solving with a start and a deadline, files of models and
solutions, and named conflicts. What the models say is in `ronda.formulations.allocation`. All
modules load HiGHS or Pyomo, so import by module path: ``highs`` (`solve`), ``model_file``
(`export`, `load_solution`), ``infeasible`` (`conflicts`).
"""
