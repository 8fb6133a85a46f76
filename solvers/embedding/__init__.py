"""A scheduler of one's own asks ronda: what a host has becomes a round, and plans become changes.

Here stand the readers of rates and jobs, and the façade that keeps state between decisions. Who
decides is a policy, what is believed is in `ronda.solvers.horizon`.
"""

from ronda.solvers.embedding.changes import Changes, Place
from ronda.solvers.embedding.embedded import Embedded
from ronda.solvers.embedding.records import StepTime
from ronda.solvers.embedding.round import make_round
from ronda.solvers.embedding.unmeasured import unmeasured_profile

__all__ = [
    "Changes",
    "Embedded",
    "Place",
    "StepTime",
    "make_round",
    "unmeasured_profile",
]
