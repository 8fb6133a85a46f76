"""Seeded generators of rounds and horizons, with a size axis and a severity axis.

The same arguments give the same object, byte for byte when written. Nothing is read: applications
are those of `ronda.instances.applications`.

========================== ========================================================
`round`                    a snapshot of elastic jobs, some of which run
`horizon`                  an instance: elastic and rigid jobs that arrive at random
`tiny_round`               a round that is small enough for brute force
`SEVERITIES`               the severity axis: loose, balanced, tight
========================== ========================================================
"""

from ronda.instances.generate_common import SEVERITIES, Severity
from ronda.instances.generate_horizon import horizon
from ronda.instances.generate_round import round
from ronda.instances.generate_tiny import tiny_round

__all__ = ["SEVERITIES", "Severity", "horizon", "round", "tiny_round"]
