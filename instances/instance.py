"""An instance: a whole horizon to schedule, and what breaks in its course.

Faults are drawn ahead, and only driver and checker read them. A policy sees no more than a
scheduler would: which GPUs are out of service now (`Cluster.out`), and what has been measured of
running jobs.
"""

from typing import Any, Final, Literal

from ronda.instances.base import Index, Name, NonNegative, Positive, Record, Share
from ronda.instances.budget import Budget
from ronda.instances.cluster import Cluster
from ronda.instances.job import Costs, Job
from ronda.instances.learning import Sweep
from ronda.instances.profile import NoiseCurve, Profile

Knowledge = Literal["oracle", "declared", "history", "none"]
"""What policies know of jobs: their true sizes; the estimates of the instance; sizes and speeds
that are learnt from jobs that ran; speeds, and how far live jobs have come, alone."""

DECLARED: Final = "declared"
"""The knowledge of a run that does not say."""

LEARNT: Final = ("history", "none")
"""Levels of knowledge at which nobody tells sizes and speeds: they are learnt."""


class Cadence(Record, frozen=True, kw_only=True):
    """When the driver calls the policy.

    Attributes
    ----------
    period_s
        Seconds from one call to the next while jobs are live; None: never by the clock.
    on_event
        At every submission and completion as well.
    on_report
        Whenever a running trial of a sweep reports its loss, too: at the end of each `Job.epoch`.
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
        From when it is out of service until when.
    notice_s
        For how long before it is drained: from then on, GPUs of it that no job holds are out of
        service, and it is off as soon as none is held; jobs that are left at the start are stopped
        in good order. None: it fails, and jobs there lose what they did since their last
        checkpoint.
    """

    node: Index
    start_s: NonNegative
    end_s: Positive
    notice_s: NonNegative | None = None

    @property
    def known_s(self) -> float:
        """When the scheduler first knows of it."""
        return self.start_s if self.notice_s is None else max(0.0, self.start_s - self.notice_s)


class Straggler(Record, frozen=True, kw_only=True):
    """A time in which a node is slow: every job with GPUs there runs at `speed` of its rate.

    The slowest node of a job counts, as its GPUs wait for each other; they draw as much as ever.

    Attributes
    ----------
    node
        Index of the node.
    start_s, end_s
        From when until when.
    speed
        Speed as a fraction of the usual one.
    """

    node: Index
    start_s: NonNegative
    end_s: Positive
    speed: Share


class Faults(Record, frozen=True, kw_only=True):
    """What goes wrong; by default nothing.

    Jobs fail by themselves at the work that their ``truth.failures`` say, and run faster or slower,
    hotter or cooler than their profiles by ``truth.throughput`` and ``truth.power``.

    Attributes
    ----------
    outages
        Failures and maintenance of nodes; those of one node do not overlap, notice included.
    stragglers
        Slow nodes; those of one node do not overlap.
    silences
        Pairs (start, end) of times in which nothing is measured: reports of progress are lost.
    report_s
        Seconds that a report of progress is late.
    decision_s
        Seconds from the snapshot that a policy is given until its plan takes effect; what can no
        longer be done by then is left out. At a change of a limit, and when the energy budget would
        run out, the decision takes effect at once.
    retries
        How often a job that fails by itself may start again; the next failure ends it for good.
        None: without limit.
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
        What people, catalogues and results call it.
    description
        What it is, in a sentence.
    source, licence, citation
        Where it comes from, under which terms it may be used, and what to cite.
    cluster
        The machine room.
    jobs
        In order of submission.
    profiles
        Applications that jobs refer to, by name.
    curves
        Developments of the gradient noise that jobs' truths refer to, by name.
    budget
        Limits on power and energy.
    costs
        What starts and restarts cost a job that has no costs of its own.
    cadence
        When to decide.
    faults
        What breaks.
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
        """Return what a notebook shows."""
        from ronda.instances.tables.documents import instance_table

        return instance_table(self).html()
