"""Policies that decide GPUs, and the setting that then decides clocks."""

from collections.abc import Callable
from dataclasses import dataclass

from ronda.instances.job import JobState, Option
from ronda.instances.round import Round

Clocks = Callable[[JobState, Option], Option]
"""From a job and its option at full clock to the option that it is to run with."""


def full_clock(state: JobState, option: Option) -> Option:
    """Return the option as it is."""
    return option


@dataclass(frozen=True)
class Clocked:
    """A policy that decides GPUs (and batch) at full clock and leaves the clock to a setting.

    Whatever such a policy gives a job afresh goes through `clocks`, which is what the suffix
    ``+zeus`` replaces (`ronda.solvers.policies.energy.zeus`); what runs on keeps its clock.
    """

    def clocks(self, round: Round) -> Clocks:
        """Return the setting for a round."""
        return full_clock
