"""The solution of any model by HiGHS, or by another solver with a name.

Here stand the arrays of a model and its outcome (``linear_form``), models of Pyomo
(``from_pyomo``), the solvers by name with their abilities (``backends``), solving with a start and
a deadline (``highs``, ``cp_sat``) or through Pyomo (``by_pyomo``), files of models and solutions
(``model_file``), and named conflicts (``infeasible``). The models are stated in
`ronda.formulations.allocation`. Modules except ``backends`` and ``linear_form`` load a solver or
Pyomo, so import by module path.
"""
