"""The contract between the host of a round and the policy that decides it."""

from enum import Flag, auto
from typing import Protocol, runtime_checkable

from ronda.instances.clock import Deadline
from ronda.instances.errors import RondaError
from ronda.instances.plan import Plan
from ronda.instances.round import Round


class Capability(Flag):
    """What a policy can do; code asks for these, never for a policy's name."""

    NONE = 0
    BOUND = auto()  # its plans carry a bound
    WARM_START = auto()  # it uses `initial`
    RANDOM = auto()  # the seed matters
    ELASTIC = auto()  # it chooses GPUs, clocks or batch sizes
    PREEMPTS = auto()  # it may stop or change running jobs
    ENERGY = auto()  # it sees power caps and energy budgets when it chooses options
    SIZES = auto()  # it looks at the expected sizes of jobs when it orders or sizes them
    HISTORY = auto()  # it predicts sizes from jobs that have ended
    SLEEPS = auto()  # it powers nodes off and wakes them
    OBJECTIVE = auto()  # its plans carry an objective that others can be compared on
    PRICES = auto()  # its plans carry prices, by which each job's choice can be explained
    RULES = auto()  # it keeps rules of the user's own (its parameter `extra`)
    ARRAYS = auto()  # it decides which jobs share GPUs; others see each array as one job


OPTIMISING = ~(Capability.ARRAYS | Capability.RULES)
"""Policies that optimise an objective over all options of a round, by its prices, can do all but
these two."""


@runtime_checkable
class Policy(Protocol):
    """Anything that can decide a round; FIFO and the MILP have the same face.

    A policy holds only its parameters: everything that it carries from round to round is in the
    round (what runs) and in `initial` (its previous plan), so that a run can be resumed anywhere.
    """

    name: str
    capabilities: Capability

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round.

        The same round, seed and initial give the same plan, unless the clock cut the search.
        `initial` is the previous plan, or any other to start from.
        """
        ...


class MadePolicy(Policy, Protocol):
    """A policy that was made by its name: its deadline may be given in seconds, or left out."""

    def plan(
        self,
        round: Round,
        *,
        deadline: Deadline | float | None = None,
        seed: int = 0,
        initial: Plan | None = None,
    ) -> Plan:
        """Decide a round."""
        ...


class FaultError(RondaError):
    """A policy elsewhere has no plan: why, in the words in which that is recorded."""
