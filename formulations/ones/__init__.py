"""What ONES defines about a single schedule: its genome, its limits on batch sizes, and its scores.

What happens between ticks is in `ronda.solvers.ones`.
"""

from ronda.formulations.ones.genome import IDLE, counts
from ronda.formulations.ones.limits import MEASUREMENTS, REQUESTS, speeds

__all__ = ["IDLE", "MEASUREMENTS", "REQUESTS", "counts", "speeds"]
