"""Runs: each in a process of its own, here or on a Dask cluster; recorded, resumed and compared.

Here stand cases, workers, results and where they are kept; what is drawn or written of them is in
`ronda.bench.figures`. The modules `cluster` and `on_dask` load Dask and are imported by their
path, `single` and `runner` are what a run's process needs.
"""

from ronda.bench.runs.compare import Comparison, Layout, failed
from ronda.bench.runs.folder import claim
from ronda.bench.runs.provenance import commit, host
from ronda.bench.runs.results import Result, ResultsFile
from ronda.bench.runs.specs import RunCase, cases, parse_seeds, split_policies
from ronda.bench.runs.variant import Variant, reference_w
from ronda.bench.runs.worker import RunLimits

__all__ = [
    "Comparison",
    "Layout",
    "Result",
    "ResultsFile",
    "RunCase",
    "RunLimits",
    "Variant",
    "cases",
    "claim",
    "commit",
    "failed",
    "host",
    "parse_seeds",
    "reference_w",
    "split_policies",
]
