"""The solution of any model by HiGHS or another solver.

The package contains the arrays of a model and its outcome (``linear_form``), the conversion of
Pyomo models (``from_pyomo``), and the solvers by name with their abilities (``backends``). Models
are solved with a start and a deadline (``highs``, ``cp_sat``) or through Pyomo (``by_pyomo``).
Other modules handle files of models and solutions (``model_file``) and named conflicts
(``infeasible``). The models are stated in `ronda.formulations.allocation`. All modules but
``backends`` and ``linear_form`` load a solver or Pyomo, so import them by module path.
"""
