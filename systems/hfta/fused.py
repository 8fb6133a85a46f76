"""BASE+fused: an optimising policy that also decides which jobs share GPUs.

Policy classes are made on demand: ``getattr(fused, "prices")`` is the class of ``prices+fused``.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from ronda.instances.base import NonNegative
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.registry import composed
from ronda.systems.hfta.jointly import Jointly


@dataclass(frozen=True, kw_only=True)
class Fused(TimelyPolicy):
    """Plan the members of each fusion class as one elastic job with the base policy.

    The base policy decides the GPUs and the clock of a class together with all other jobs, under
    the same budget. The members are split into arrays of even widths, each in its fastest mode.
    Arrays become narrower as members end, and new members join them.

    Parameters
    ----------
    gather
        Waiting members join running arrays once their total waiting time is at least this many
        times the total pause of the members there; with 0 they join at once.
    """

    gather: NonNegative = 1.0

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Plan the classes with the base policy, and return the plan for their members."""
        joint = Jointly(round, self.gather)
        before = None if initial is None else replace(initial, allocations=joint.round.held)
        base: TimelyPolicy = super()  # type: ignore[assignment]
        return joint.told(base.decide(joint.round, deadline=deadline, seed=seed, initial=before))


BASES = ("prices", "milp", "evolve")
"""Policies that choose among the options of all jobs; each also exists as ``BASE+fused``."""

__getattr__ = composed(
    BASES, Fused, "fused", "with jobs of a fusion class in arrays", Capability.ARRAYS
)
