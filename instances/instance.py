"""Instances: a whole horizon to schedule, with its faults.

Faults are drawn in advance, and only the driver and the checker read them. A policy sees what a
real scheduler would see: the GPUs that are out of service now (`Cluster.out`), and the measurements
of running jobs.
"""

from typing import Any, Final, Literal

from ronda.instances.base import Index, Name, NonNegative, Positive, Record, Share
from ronda.instances.budget import Budget
from ronda.instances.cluster import Cluster
from ronda.instances.job import Costs, Job
from ronda.instances.learning import Sweep
from ronda.instances.profile import NoiseCurve, Profile
from ronda.instances.site import NO_SITE, Site

Knowledge = Literal["oracle", "declared", "history", "none"]
"""What policies know about jobs: true sizes; the instance's estimates; sizes and speeds learnt from
earlier jobs; or only learnt speeds and the progress of live jobs."""

DECLARED: Final = "declared"
"""The default knowledge of a run."""

LEARNT: Final = ("history", "none")
"""The levels of knowledge at which sizes or speeds are learnt."""


class Cadence(Record, frozen=True, kw_only=True):
    """The times at which the driver calls the policy.

    Attributes
    ----------
    period_s
        Seconds from one call to the next while jobs are live. None for no periodic calls.
    on_event
        Whether the policy is called at every submission and completion.
    on_report
        Whether the policy is called when a running trial of a sweep reports its loss, at the end of
        each `Job.epoch`.
    """

    period_s: Positive | None = None
    on_event: bool = True
    on_report: bool = False


class Outage(Record, frozen=True, kw_only=True):
    """A period in which a node can run nothing and draws no power.

    Attributes
    ----------
    node
        Index of the node.
    start_s, end_s
        Start and end of the outage.
    notice_s
        Seconds of draining before the outage. During this time the node's free GPUs are out of
        service, and the node goes off as soon as no job holds any of its GPUs. Jobs still there at
        the start of the outage are stopped cleanly. None means a failure, in which jobs on the node
        lose their progress since the last checkpoint.
    open
        Whether jobs that end before the outage may still start on the node after its notice.
    """

    node: Index
    start_s: NonNegative
    end_s: Positive
    notice_s: NonNegative | None = None
    open: bool = False

    @property
    def known_s(self) -> float:
        """The time at which the scheduler first knows of the outage."""
        return self.start_s if self.notice_s is None else max(0.0, self.start_s - self.notice_s)


class Straggler(Record, frozen=True, kw_only=True):
    """A period in which a node is slow: every job with GPUs on it runs at `speed` times its rate.

    The slowest node of a job determines its speed, as its GPUs wait for each other. Their power is
    unchanged.

    Attributes
    ----------
    node
        Index of the node.
    start_s, end_s
        Start and end of the period.
    speed
        Speed as a fraction of the usual speed.
    """

    node: Index
    start_s: NonNegative
    end_s: Positive
    speed: Share


class Faults(Record, frozen=True, kw_only=True):
    """The faults of an instance, by default none.

    In addition, jobs fail by themselves at the work in their ``truth.failures``. Their speed and
    power differ from their profiles by the factors ``truth.throughput`` and ``truth.power``.

    Attributes
    ----------
    outages
        Failures and maintenance of nodes. Outages of one node, including their notice, do not
        overlap.
    stragglers
        Periods in which nodes are slow. Periods of one node do not overlap.
    silences
        Pairs (start, end) of periods in which progress reports are lost.
    report_s
        Delay of progress reports in seconds.
    decision_s
        Seconds from the snapshot for a policy until its plan takes effect. Actions that are no
        longer possible by that time are dropped. When a limit changes or the energy budget would
        run out, the decision takes effect at once.
    retries
        How many times a job may restart after failing by itself. The next failure ends it for good.
        None for no limit.
    """

    outages: tuple[Outage, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    silences: tuple[tuple[NonNegative, NonNegative], ...] = ()
    report_s: NonNegative = 0.0
    decision_s: NonNegative = 0.0
    retries: Index | None = None


class Instance(Record, frozen=True, kw_only=True):
    """An instance: a cluster, applications, jobs with their submission times, limits and costs.

    Attributes
    ----------
    format
        Version of the file format.
    name
        The name in catalogues and results.
    description
        A one-sentence description.
    source, licence, citation
        The source, the terms of use, and the publication to cite.
    cluster
        The cluster.
    jobs
        The jobs in order of submission.
    profiles
        Profiles of the applications that jobs refer to, by name.
    curves
        Gradient noise curves that the jobs' truths refer to, by name.
    budget
        Limits on power and energy.
    costs
        Pauses for starts and restarts of jobs without their own costs.
    cadence
        Times of decisions.
    faults
        Outages, stragglers and late reports.
    sweeps
        Hyper-parameter searches whose trials are jobs, by name.
    site
        Rules of the site.
    reference
        Published or derived reference values, by policy and metric.
    made
        How the instance was made (command, seed, filters), for reproduction.
    """

    format: Literal["ronda/instance/2", "ronda/instance/1"] = "ronda/instance/2"
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
    site: Site = NO_SITE
    description: str = ""
    source: str = ""
    licence: str = ""
    citation: str = ""
    reference: dict[str, dict[str, float]] = {}
    made: dict[str, Any] = {}

    def _repr_html_(self) -> str:
        from ronda.instances.tables.documents import instance_table

        return instance_table(self).html()
