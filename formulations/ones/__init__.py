"""The genome of ONES, its limits on batch sizes, and its scores.

Here stands what the paper and artifact of ONES define about a single schedule: operators on genomes
(`genome`), the order of jobs in one (`reorder`), how limits grow and shrink and what is known of
speed (`limits`). What happens between ticks is in `ronda.solvers.ones`.
"""

from ronda.formulations.ones.genome import IDLE, counts
from ronda.formulations.ones.limits import MEASUREMENTS, REQUESTS, speeds

__all__ = ["IDLE", "MEASUREMENTS", "REQUESTS", "counts", "speeds"]
