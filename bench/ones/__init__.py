"""What ONES claims, put to the test: studies, as ``python -m ronda.bench.study ones-claim``.

`claim` compares it with its baselines as its paper does, `sruf` its search for a schedule of least
score with the optimum, `calibration` its prediction of progress with held-out `learning_curves`.
The policy itself is in `ronda.solvers.ones`.
"""

__all__: list[str] = []
