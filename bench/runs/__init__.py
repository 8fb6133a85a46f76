"""Runs: one process each, recorded, resumed and compared.

Here stand cases, workers, results and where they are kept. What is drawn of them is in
`ronda.bench.figures`.
"""
