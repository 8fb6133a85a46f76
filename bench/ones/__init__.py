"""Studies of ONES: ``python -m ronda.bench.study sruf``, ``calibration`` and ``learning-curves``.

`sruf` holds its search for a schedule of least score against the optimum, `calibration` its
prediction of progress against held-out `learning_curves`. How it does against its baselines is the
suite ``lab/suites/ones-claim.toml``; the policy itself is in `ronda.solvers.ones`.
"""

__all__: list[str] = []
