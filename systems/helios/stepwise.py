"""Policies that decide once in a step which nodes sleep, beside the jobs that they start."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated

import msgspec

from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.systems.helios.forecasts import past

BASES = ("prices", "milp")
"""The policies that start the jobs of ``BASE+ces`` and ``BASE+lot-sizing``."""

SLEEPS_BESIDE = Capability.SLEEPS | Capability.RULES
"""The abilities that these have: to let nodes sleep, and to keep the user's rules as `BASES` do."""


@dataclass(frozen=True, kw_only=True)
class Stepwise(TimelyPolicy):
    """A policy that lets nodes sleep beside the jobs that the next class of its order starts.

    Attributes
    ----------
    history
        An earlier demand series, a name or a file, or empty.
    step_s
        Length of a step in seconds, which must be that of the history.
    """

    history: str = ""
    step_s: Annotated[float, msgspec.Meta(ge=1, le=3600)] = 600.0  # as in Helios

    def __post_init__(self) -> None:
        """Raise InputError if nothing can be learnt from the history."""
        refuse = getattr(super(), "__post_init__", None)
        if refuse is not None:
            refuse()
        past(self.history, self.step_s)

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start the jobs by the base policy, and let unused nodes sleep."""
        base: TimelyPolicy = super()  # type: ignore[assignment]
        plan = base.decide(round, deadline=deadline, seed=seed, initial=initial)
        return self.let_sleep(round, plan, initial)

    @abstractmethod
    def let_sleep(self, round: Round, plan: Plan, initial: Plan | None) -> Plan:
        """Return the plan with the nodes asleep that need not be awake."""
