"""Speed of the import of ronda."""

import subprocess
import sys
from statistics import median
from typing import Any

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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)
