"""The contract between the host of a round and the policy that decides it."""

from enum import Flag, auto
from typing import Protocol, runtime_checkable

from ronda.instances.clock import Deadline
from ronda.instances.errors import RondaError
from ronda.instances.plan import Plan
from ronda.instances.round import Round


class Capability(Flag):
    """The abilities of a policy. Code tests for these and never for a policy's name."""

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
    OBJECTIVE = auto()  # its plans carry an objective by which plans can be compared
    PRICES = auto()  # its plans carry prices, which explain each job's choice
    RULES = auto()  # it keeps the user's own rules (its parameter `extra`)
    ARRAYS = auto()  # it decides which jobs share GPUs; others see each array as one job


OPTIMISING = ~(Capability.ARRAYS | Capability.RULES)
"""The abilities of a policy that optimises an objective over all options of a round by prices: all
but these two."""


@runtime_checkable
class Policy(Protocol):
    """Any object that can decide a round. FIFO and the MILP have the same interface.

    A policy holds only its parameters. All state from earlier rounds is in the round (the running
    jobs) and in `initial` (the previous plan), so that a run can resume at any round.
    """

    name: str
    capabilities: Capability

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round.

        The same round, seed and `initial` give the same plan, unless the deadline cut the search
        short. `initial` is the previous plan, or any other plan to start from.
        """
        ...


class MadePolicy(Policy, Protocol):
    """A policy made from its name. Its deadline may be given in seconds or left out."""

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
    """The failure of a policy in another process to make a plan, with the recorded reason."""
