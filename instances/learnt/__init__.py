"""What was learnt from data and is kept in files: fits of models, and predictors of job sizes.

Here stand the records. How a model is fitted is `ronda.solvers.fitting`, how a size is predicted
`ronda.formulations.prediction`.
"""
