"""The options of a round's jobs, kept for the next round: only jobs that changed are built anew.

A job's rows (`ronda.formulations.options.job_rows`) follow from the job, what it runs on, its
gradient noise, its profile, the cluster and whether watts matter, and from nothing else. So rows
that are kept are equal to those that would be built, to the last bit: a process that has nothing to
remember decides the same.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ronda.formulations.options.job_rows import ALLOCATION, NEW, JobRows, job_rows
from ronda.formulations.remembered import remembered
from ronda.instances.cluster import Cluster
from ronda.instances.round import Round

if TYPE_CHECKING:
    from ronda.formulations.options.table import OptionTable

REUSED, LIMITS = "reused", "power began or ceased to matter"
"""What happened to a job's options, if they were not built for a reason of its own."""


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
        """Return (J,) the rows that are known, None if not, and what happened to how many.

        Of a job that only runs on something else, what it may choose from is still right.

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
        built: dict[str, int] = {}
        for state in jobs:
            rows, profile = known.get(state.job.id), profiles[state.job.profile]
            reason = NEW if rows is None else rows.outdated(state, profile)
            if rows is not None and reason is not None:
                moved = reason == ALLOCATION and rows.offers_hold(state, profile)
                rows = job_rows(state, profile, rows.offers, round.cluster) if moved else None
            if reason is not None:
                built[reason] = built.get(reason, 0) + 1
            found.append(rows)
        reused = len(jobs) - sum(built.values())
        return found, {REUSED: reused, **built} if reused else built

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
        return self.table if all(map(JobRows.same_rows, jobs, before)) else None


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
    said = f"options of {changes.get(REUSED, 0)} jobs kept"
    built = [(reason, n) for reason, n in changes.items() if reason != REUSED and n]
    if not built:
        return said
    reasons = ", ".join([f"{n} {reason}" for reason, n in sorted(built)])
    return f"{said}, of {sum([n for _, n in built])} built ({reasons})"
