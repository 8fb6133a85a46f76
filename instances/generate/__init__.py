"""Seeded generators of rounds, horizons, sweeps and demand series.

The same arguments give the same object, byte for byte when written. Generators read only packaged
fits. Their applications are in `ronda.instances.generate.applications`.
"""

from ronda.instances.generate.common import SEVERITIES, Severity
from ronda.instances.generate.faults import Breakage, broken
from ronda.instances.generate.horizons import horizon
from ronda.instances.generate.mixtures import mixed
from ronda.instances.generate.rhythm import demand
from ronda.instances.generate.rounds import round
from ronda.instances.generate.structure import Structure
from ronda.instances.generate.sweeps import SHARED, Trials, fusible, sweep
from ronda.instances.generate.tiny import tiny_round

__all__ = [
    "SEVERITIES",
    "SHARED",
    "Breakage",
    "Severity",
    "Structure",
    "Trials",
    "broken",
    "demand",
    "fusible",
    "horizon",
    "mixed",
    "round",
    "sweep",
    "tiny_round",
]
