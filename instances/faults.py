"""What breaks in the course of an instance, drawn ahead; only driver and checker read it.

A policy sees no more than a scheduler would: which GPUs are out of service now (`Cluster.out`), and
what has been measured of running jobs.
"""

from ronda.instances.base import Index, NonNegative, Positive, Record, Share


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
