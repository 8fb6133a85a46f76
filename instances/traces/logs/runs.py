"""One run of a job as a log has it, and the account of a log's rows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from zlib import crc32

import msgspec

from ronda.instances.errors import InputError
from ronda.instances.job import After
from ronda.instances.traces.columns import UNREADABLE, Dropped

STEPS = "steps"
"""The entry of `RowAccount.folded` for steps of jobs."""


class LogRun(msgspec.Struct, kw_only=True, gc=False):
    """A run of a job, of one part of a heterogeneous job, or a wait that the log tells of.

    Times are seconds since 1970, or on any clock of the log; NaN is not known.

    Attributes
    ----------
    place
        Where the log has it, as in "row 7".
    job, part
        Id of the job, and the number of the part of a heterogeneous job.
    array, tasks, at_once
        Id of its job array; the tasks of an array that waits in one row; and how many of these may
        run at once.
    state
        First word of its state.
    submit_s, eligible_s, start_s, end_s
        When it was submitted, could start, started, and ended.
    ran_s, suspended_s
        Seconds of progress, and seconds for which it was suspended.
    limit_s
        Time limit in seconds; infinite for none.
    user, account, partition, qos, name
        As in the log; empty if it does not say.
    gpus, kinds
        All GPUs that it held, or else asked for, and their types.
    asked
        The GPU types that it asked for; None if the log does not say.
    cpus, memory_gib
        Cores and memory in all.
    nodes, count
        Names of its nodes as a list in Slurm's format, and their number.
    features
        Labels that its nodes must have.
    after
        A job that had to come first.
    supposed
        Whether the log does not tell its start, which is taken for the submission.
    total_s
        Seconds of progress of all runs of the job, if each went on where the one before had
        stopped; 0 if the last run began anew.
    energy_j
        Joules that its nodes drew for it; NaN is not known.
    """

    place: str
    job: str
    part: int = 0
    array: str | None = None
    tasks: tuple[range, ...] = ()
    at_once: int | None = None
    state: str = ""
    submit_s: float = nan
    eligible_s: float = nan
    start_s: float = nan
    end_s: float = nan
    ran_s: float = nan
    suspended_s: float = 0.0
    limit_s: float = nan
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    name: str = ""
    gpus: float = 0.0
    kinds: tuple[str, ...] = ()
    asked: tuple[str, ...] | None = None
    cpus: float = 0.0
    memory_gib: float = 0.0
    nodes: str = ""
    count: int = 0
    features: tuple[str, ...] = ()
    after: After | None = None
    supposed: bool = False
    total_s: float = 0.0
    energy_j: float = nan

    @property
    def started(self) -> bool:
        """Whether it has started."""
        return not isnan(self.start_s)

    @property
    def held_s(self) -> float:
        """The seconds for which it held its GPUs; NaN if the log does not say."""
        lasted_s = self.end_s - self.start_s
        return self.ran_s + self.suspended_s if isnan(lasted_s) else lasted_s

    def gone_s(self, until_s: float) -> float:
        """Return when it gave its GPUs back, or the end of the log."""
        return until_s if isnan(self.held_s) else self.start_s + self.held_s

    @property
    def known_s(self) -> float:
        """The last moment that it tells of."""
        ends = (self.submit_s, self.start_s, self.end_s, self.start_s + self.held_s)
        return max((end for end in ends if not isnan(end)), default=-float("inf"))


@dataclass(frozen=True, kw_only=True)
class LogFilter:
    """The jobs of a log to read; rows of others are left out while the log is read.

    Attributes
    ----------
    since_s, until_s
        Keep jobs submitted from the one second, and before the other, on the log's clock.
    partitions
        Keep jobs of these partitions; empty for all.
    sample
        Share of the jobs to keep, drawn by their ids, all runs of a job together.
    device
        ``gpu``, or ``cpu`` to read every core as a device.
    """

    since_s: float | None = None
    until_s: float | None = None
    partitions: frozenset[str] = frozenset()
    sample: float = 1.0
    device: str = "gpu"

    def drawn(self, job: str) -> bool:
        """Return whether a job is in the sample."""
        return self.sample >= 1.0 or crc32(job.encode()) < self.sample * 2**32

    def within(self, submit_s: float) -> bool:
        """Return whether a submission is in the window."""
        early = self.since_s is not None and submit_s < self.since_s
        return not (early or (self.until_s is not None and submit_s >= self.until_s))

    def leaves_out(self, run: LogRun) -> str | None:
        """Return why a run is not read, or None."""
        if self.partitions and run.partition not in self.partitions:
            return "another partition"
        if not self.drawn(run.job):
            return "a job that is not in the sample"
        return None if self.within(run.submit_s) else "a submission outside the window"


EVERY = LogFilter()


@dataclass
class RowAccount:
    """An account of the rows of a log: which became runs, and why the others did not.

    Attributes
    ----------
    rows
        Rows read.
    dropped
        Rows that are no runs of jobs kept, by reason.
    folded
        Rows that only repeat what others say, such as steps of jobs, by kind.
    told
        What was mended or assumed, by kind, with the number of rows.
    unread
        Columns that are not read.
    until_s
        The last moment that any row tells of.
    """

    rows: int = 0
    dropped: Dropped = field(default_factory=Dropped)
    folded: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    unread: tuple[str, ...] = ()
    until_s: float = -float("inf")

    def drop(self, why: str, place: str) -> None:
        """Count a row under a reason."""
        self.dropped.examples.setdefault(why, place)
        self.dropped[why] += 1


def refuse_unreadable(account: RowAccount, path: str, reasons: Sequence[str]) -> None:
    """Refuse a log of which more than a hundredth cannot be read; `reasons` name such rows."""
    many = sum(account.dropped[why] for why in reasons)
    if many > UNREADABLE * account.rows:
        first = next(why for why in reasons if account.dropped[why])
        found = f"{first} ({account.dropped.examples[first]}), and {many:,} of {account.rows:,}"
        expected = f"at most {UNREADABLE:.0%} of such rows"
        raise InputError(path, f"{found} rows that cannot be read", expected)
