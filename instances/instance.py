"""An instance: a whole horizon to schedule, with the faults in its course.

Faults are drawn ahead, and only driver and checker read them. A policy sees no more than a
scheduler would: the GPUs out of service now (`Cluster.out`), and the measurements of running jobs.
"""

from typing import Any, Final, Literal

from ronda.instances.base import Index, Name, NonNegative, Positive, Record, Share
from ronda.instances.budget import Budget
from ronda.instances.cluster import Cluster
from ronda.instances.job import Costs, Job
from ronda.instances.learning import Sweep
from ronda.instances.profile import NoiseCurve, Profile

Knowledge = Literal["oracle", "declared", "history", "none"]
"""The knowledge of policies about jobs: true sizes; the estimates of the instance; sizes and speeds
learnt from earlier jobs; or only learnt speeds and the progress of live jobs."""

DECLARED: Final = "declared"
"""The default knowledge of a run."""

LEARNT: Final = ("history", "none")
"""The levels of knowledge at which sizes or speeds are learnt."""


class Cadence(Record, frozen=True, kw_only=True):
    """The times at which the driver calls the policy.

    Attributes
    ----------
    period_s
        Seconds from one call to the next while jobs are live; None for never by the clock.
    on_event
        Whether it is called at every submission and completion.
    on_report
        Whether it is called when a running trial of a sweep reports its loss, at the end of each
        `Job.epoch`.
    """

    period_s: Positive | None = None
    on_event: bool = True
    on_report: bool = False


class Outage(Record, frozen=True, kw_only=True):
    """A time in which a node can run nothing and draws nothing.

    Attributes
    ----------
    node
        Index of the node.
    start_s, end_s
        Begin and end of the outage.
    notice_s
        Time before it for which the node is drained: its GPUs that no job holds are out of service,
        and it is off as soon as none is held; jobs that remain at the start are stopped in good
        order. None for a failure, at which jobs there lose their progress since the last
        checkpoint.
    """

    node: Index
    start_s: NonNegative
    end_s: Positive
    notice_s: NonNegative | None = None

    @property
    def known_s(self) -> float:
        """The time at which the scheduler first knows of it."""
        return self.start_s if self.notice_s is None else max(0.0, self.start_s - self.notice_s)


class Straggler(Record, frozen=True, kw_only=True):
    """A time in which a node is slow: every job with GPUs there runs at `speed` of its rate.

    The slowest node of a job counts, as its GPUs wait for each other; they draw as much as ever.

    Attributes
    ----------
    node
        Index of the node.
    start_s, end_s
        Begin and end of this time.
    speed
        Speed as a fraction of the usual one.
    """

    node: Index
    start_s: NonNegative
    end_s: Positive
    speed: Share


class Faults(Record, frozen=True, kw_only=True):
    """The faults of an instance, by default none.

    Jobs fail by themselves at the work in their ``truth.failures``, and differ from the speed and
    power of their profiles by ``truth.throughput`` and ``truth.power``.

    Attributes
    ----------
    outages
        Failures and maintenance of nodes; those of one node do not overlap, notice included.
    stragglers
        Slow nodes; those of one node do not overlap.
    silences
        Pairs (start, end) of times in which reports of progress are lost.
    report_s
        Seconds by which a report of progress is late.
    decision_s
        Seconds from the snapshot for a policy until its plan takes effect; actions that are no
        longer possible by then are left out. At a change of a limit, and when the energy budget
        would run out, the decision takes effect at once.
    retries
        The number of times that a job which fails by itself may start again; the next failure ends
        it for good. None for no limit.
    """

    outages: tuple[Outage, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    silences: tuple[tuple[NonNegative, NonNegative], ...] = ()
    report_s: NonNegative = 0.0
    decision_s: NonNegative = 0.0
    retries: Index | None = None


class Instance(Record, frozen=True, kw_only=True):
    """A horizon: the cluster, the applications, the jobs with their submit times, limits and costs.

    Attributes
    ----------
    format
        Version of the file format.
    name
        The name in catalogues and results.
    description
        A description in a sentence.
    source, licence, citation
        The source, the terms of use, and the publication to cite.
    cluster
        The machine room.
    jobs
        The jobs in order of submission.
    profiles
        Applications that jobs refer to, by name.
    curves
        Developments of the gradient noise that jobs' truths refer to, by name.
    budget
        Limits on power and energy.
    costs
        The pauses of starts and restarts, for jobs that have no costs of their own.
    cadence
        The times of decisions.
    faults
        Outages, stragglers and late reports.
    sweeps
        Searches for hyper-parameters whose trials are jobs, by name.
    reference
        Published or derived values to compare with, by policy and metric.
    made
        How the instance was made (command, seed, filters), for reproduction.
    """

    format: Literal["ronda/instance/1"] = "ronda/instance/1"
    name: Name
    cluster: Cluster
    profiles: dict[str, Profile]
    jobs: tuple[Job, ...]
    curves: dict[str, NoiseCurve] = {}
    budget: Budget = Budget()
    costs: Costs = Costs()
    cadence: Cadence = Cadence()
    faults: Faults = Faults()
    sweeps: dict[str, Sweep] = {}
    description: str = ""
    source: str = ""
    licence: str = ""
    citation: str = ""
    reference: dict[str, dict[str, float]] = {}
    made: dict[str, Any] = {}

    def _repr_html_(self) -> str:
        from ronda.instances.tables.documents import instance_table

        return instance_table(self).html()
