"""Seeded generators of rounds and horizons, with a size axis and a severity axis.

The same arguments give the same object, byte for byte when written. Nothing is read: applications
are those of `ronda.instances.generate.applications`.

========================== ========================================================
`round`                    a snapshot of elastic jobs, some of which run
`horizon`                  an instance: elastic and rigid jobs that arrive at random
`tiny_round`               a round that is small enough for brute force
`SEVERITIES`               the severity axis: loose, balanced, tight
========================== ========================================================
"""

from ronda.instances.generate.common import SEVERITIES, Severity
from ronda.instances.generate.horizons import horizon
from ronda.instances.generate.rounds import round
from ronda.instances.generate.tiny import tiny_round

__all__ = ["SEVERITIES", "Severity", "horizon", "round", "tiny_round"]
