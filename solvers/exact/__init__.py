"""Any model through a solver: HiGHS, or another one by its name.

Here stand the arrays of a model and what came of it (``linear_form``), models of Pyomo
(``from_pyomo``), the solvers by name and what each can do (``backends``), solving with a start and
a deadline (``highs``, ``cp_sat``) or through Pyomo (``by_pyomo``), files of models and solutions
(``model_file``), and named conflicts (``infeasible``). What the models say is in
`ronda.formulations.allocation`. Modules except ``backends`` and ``linear_form`` load a solver or
Pyomo, so import by module path.
"""
