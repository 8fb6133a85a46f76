"""A job in a round and in a plan, as the rules of a site see it."""

from typing import NamedTuple

from ronda.instances.job import Allocation, JobState


class JobInPlan(NamedTuple):
    """A job in a round, with its allocation under a plan, if any.

    A rule that came later stops nobody: `kept` tells whether the job goes on as it runs.
    """

    state: JobState
    allocation: Allocation | None
    kept: bool
