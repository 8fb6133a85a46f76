"""Speed of the import of ronda."""

from statistics import median
from typing import Any

from lab.program import apart
from lab.speed.cases import case


@case()
def measure_import(jobs: int) -> dict[str, Any]:
    """Time the import of ronda: median of 3 fresh processes. The baseline is import numpy."""
    del jobs
    ours, numpy = ([_import_s(name) for _ in range(3)] for name in ("ronda", "numpy"))
    return {"total_s": median(ours), "baseline_s": median(numpy)}


def _import_s(name: str) -> float:
    """Return the seconds that an import takes in a fresh process."""
    code = f"import time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t)"
    return float(apart("-c", code).stdout)
