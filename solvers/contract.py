"""The contract between the host of a round and the policy that decides it."""

import time
from enum import Flag, auto
from typing import Protocol, runtime_checkable

from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.instances.round import Round


class Deadline:
    """The time that one decision may take: building, solving and extraction together.

    `limit_s` counts from `started`, ``time.perf_counter()`` at entry (None: now); None: no limit.
    """

    def __init__(self, limit_s: float | None = None, *, started: float | None = None) -> None:
        if limit_s is not None and not limit_s > 0:
            raise InputError("time limit", f"{limit_s:g} s", "more than 0 s")
        self.limit_s = limit_s
        self.started = time.perf_counter() if started is None else started

    @property
    def end(self) -> float:
        """When it ends, in ``time.perf_counter()``; infinite without a limit."""
        return float("inf") if self.limit_s is None else self.started + self.limit_s

    def elapsed(self) -> float:
        """Return the seconds since entry."""
        return time.perf_counter() - self.started

    def left(self) -> float:
        """Return the seconds that are left (infinite without a limit, never below 0)."""
        return float("inf") if self.limit_s is None else max(0.0, self.limit_s - self.elapsed())

    def sooner(self, seconds: float) -> "Deadline":
        """Return a deadline of the same entry that ends `seconds` before this one."""
        if self.limit_s is None:
            return self
        return Deadline(max(self.limit_s - seconds, 1e-6), started=self.started)

    def over(self) -> bool:
        """Tell whether the time is used up."""
        return self.left() <= 0


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


OPTIMISING = ~Capability.NONE
"""Policies that optimise an objective over all options of a round, by its prices, can do it all."""


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
