"""The options of a round's jobs, kept for the next round: only jobs that changed are built anew.

A job's rows follow from the job, what it runs on, its gradient noise, its profile, the cluster and
whether watts matter, and from nothing else. So rows that are kept are equal to those that would be
built, to the last bit: a process that has nothing to remember decides the same.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.remembered import remembered
from ronda.instances.cluster import Cluster
from ronda.instances.instance import Round
from ronda.instances.job import Allocation, Job, JobState
from ronda.instances.profile import NoiseScale, Profile

if TYPE_CHECKING:
    from ronda.formulations.options import OptionTable

Floats = NDArray[np.float64]

REUSED, NEW, ALLOCATION, NOISE, JOB, PROFILE, LIMITS = (
    "reused",
    "new",
    "allocation changed",
    "noise measured anew",
    "job changed",
    "profile changed",
    "power began or ceased to matter",
)
"""What happened to a job's options, and why they were built."""


class JobRows(NamedTuple):
    """The rows of one job, and what they were made from.

    Attributes
    ----------
    job, allocation, noise, profile
        What the rows depend on.
    blocks
        The rows, (COLUMNS, K) each; most are shared with other jobs and none is ever changed.
    rows
        How many rows in all.
    current
        Which of them the job runs on now; -1: it waits.
    """

    job: Job
    allocation: Allocation | None
    noise: NoiseScale | None
    profile: Profile
    blocks: list[Floats]
    rows: int
    current: int

    def same_rows(self, other: "JobRows") -> bool:
        """Tell whether these are another round's rows of the same job, but for the current one."""
        if self is other:
            return True
        if self.job is not other.job or len(self.blocks) != len(other.blocks):
            return False
        return all(mine is its for mine, its in zip(self.blocks, other.blocks, strict=True))

    def outdated(self, state: JobState, profile: Profile) -> str | None:
        """Return why the rows are no longer those of a job; None if they are."""
        if self.job is not state.job and self.job != state.job:
            return JOB
        if self.allocation is not state.allocation and self.allocation != state.allocation:
            return ALLOCATION
        if self.noise is not state.noise and self.noise != state.noise:
            return NOISE
        return PROFILE if self.profile is not profile else None


class KeptOptions:
    """The rows of the jobs of the last round that was built for a cluster.

    Attributes
    ----------
    minded
        Whether watts mattered in it.
    rows
        In the order of its jobs.
    jobs
        By id of the job.
    table
        What was made of them.
    """

    __slots__ = ("jobs", "minded", "rows", "table")

    def __init__(self) -> None:
        self.minded: bool | None = None
        self.rows: Sequence[JobRows] = ()
        self.jobs: dict[str, JobRows] = {}
        self.table: OptionTable | None = None

    def look_up(
        self, round: Round, *, mind_power: bool
    ) -> tuple[list[JobRows | None], Mapping[str, int]]:
        """Return (J,) the rows that are still right, None if not, and what happened to how many.

        Parameters
        ----------
        round
            The round to build.
        mind_power
            Whether watts matter in it.
        """
        jobs, known, profiles = round.jobs, self.jobs, round.profiles
        if self.minded is not None and self.minded != mind_power:
            return [None] * len(jobs), {LIMITS: len(jobs)}
        found: list[JobRows | None] = []
        what: list[str] = []
        for state in jobs:
            rows = known.get(state.job.id)
            reason = NEW if rows is None else rows.outdated(state, profiles[state.job.profile])
            what.append(reason or REUSED)
            found.append(None if reason else rows)
        return found, Counter(what)

    def keep(self, jobs: Sequence[JobRows], *, mind_power: bool) -> "OptionTable | None":
        """Remember the rows of a round in place of those of the one before.

        Returns
        -------
        OptionTable or None
            The last table if all rows are the same, in the same order, but for the current ones.
        """
        before, self.rows, self.minded = self.rows, jobs, mind_power
        self.jobs = {rows.job.id: rows for rows in jobs}
        if len(before) != len(jobs):
            return None
        same = (rows.same_rows(old) for rows, old in zip(jobs, before, strict=True))
        return self.table if all(same) else None


def kept_options(cluster: Cluster, *, elastic: bool, prune: bool) -> KeptOptions:
    """Return what is kept with a cluster, for tables of one kind."""
    return remembered(cluster, ("kept options", elastic, prune), KeptOptions)


def in_words(changes: Mapping[str, int]) -> str:
    """Say what was kept and why the rest was built: ``options of 5 jobs kept, of 2 built (2 new)``.

    Parameters
    ----------
    changes
        Number of jobs by what happened to their options.
    """
    if not changes:
        return ""
    built = {reason: n for reason, n in changes.items() if reason != REUSED and n}
    said = f"options of {changes.get(REUSED, 0)} jobs kept"
    if not built:
        return said
    reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(built.items()))
    return f"{said}, of {sum(built.values())} built ({reasons})"
