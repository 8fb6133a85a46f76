"""Studies of models that share a GPU: ``python -m lab fusion`` and ``hfht``.

`batches` asks which jobs of a batch share a GPU, how many and where: `arrays` says what there may
be, `model` and `exact` answer as a MILP, `greedy` by rules. `tuning` and `waves` are HFHT's
algorithms. The curves are packaged fits (`ronda.instances.files.fits`).
"""
