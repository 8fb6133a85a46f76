"""A cluster as its own tools show it: nodes, jobs, tenants and limits, of any device or none.

Readers of Slurm's and Kubernetes' output return a `Snapshot`. A `Round` is made of its GPU jobs;
questions such as ``ronda why`` are asked of the snapshot itself, which has CPU jobs as well.
Times are seconds since the Unix epoch, or since any other moment that all of them share.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

from msgspec import structs

from ronda.instances.base import Record
from ronda.instances.cluster import Parts
from ronda.instances.job import After, Slices
from ronda.instances.site import GPUS, LimitGroup, PriorityClass, Tenant

CPU, MEMORY = "cpu", "memory_gib"
"""The resources of nodes beside ``gpus`` that every reader knows: cores, and GiB of memory."""


class SeenNode(Record, frozen=True, kw_only=True):
    """A node.

    Attributes
    ----------
    name
        Its name.
    has
        What it offers to jobs, by resource: ``gpus``, ``cpu`` (cores), ``memory_gib``, and others
        such as ``pods``. A piece that needs a resource which is not named here finds none of it.
    gpu_type
        Model of its GPUs, or None without GPUs or if it is not told.
    gpu_memory_gib
        Memory of one of its GPUs in GiB, or None if it is not told.
    partitions
        The partitions whose jobs may use it; empty for all jobs.
    features
        Its labels.
    racks
        The racks that hold it as pairs (level, name), from the outermost.
    out
        Why it takes no jobs, in the host's words; None if it does. What runs on it goes on.
    leaves_s, back_s
        When it stops to take jobs and all on it must have ended, and when it is back; None if that
        is not known. A node that is `out` has only a `back_s`.
    reserved
        The reservation for which it leaves, whose jobs (`SeenJob.reservation`) use it meanwhile;
        None if it leaves for all jobs.
    power
        Whether it is on, sleeps (``down``) or is on the way there (``going down``), or wakes. It is
        no outage: the host wakes a node by itself once a job is to start there. A node that is
        going down cannot be woken before it is down.
    parts
        The ways to cut its GPUs.
    cut
        The parts that every GPU is cut into now.
    recut
        When its GPUs may be cut anew, as for a `NodeGroup`.
    shared
        Whether jobs may share one of its GPUs.
    """

    name: str
    has: dict[str, float]
    gpu_type: str | None = None
    gpu_memory_gib: float | None = None
    partitions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    racks: tuple[tuple[str, str], ...] = ()
    out: str | None = None
    leaves_s: float | None = None
    back_s: float | None = None
    reserved: str | None = None
    power: Literal["on", "going down", "down", "waking"] = "on"
    parts: Parts | None = None
    cut: tuple[str, ...] = ()
    recut: Literal["never", "empty", "free"] = "never"
    shared: bool = False


class SeenJob(Record, frozen=True, kw_only=True):
    """A job that waits or runs: equal pieces, each wholly on one node.

    Attributes
    ----------
    id, name, user
        As the host has them.
    tenant
        The account or queue that it is charged to.
    comment
        The comment of its owner, who may write any text.
    partitions
        The partitions in any of which it may run; empty for all nodes.
    priority
        Its class: Slurm's QOS, or Kueue's priority class.
    rank
        The number by which the host orders waiting jobs, higher first.
    submit_s, eligible_s, start_s
        When it was submitted, when it may start, and, if it runs, when it started (a forecast is no
        start).
    limit_s
        Seconds for which it may run in all, or None.
    ends_s
        When it will have ended, if that is known better than by `limit_s`.
    count
        Number of pieces.
    least
        Fewest pieces with which it may start, or None for all.
    per
        What each piece holds, by resource as in `SeenNode.has`.
    own_nodes
        Whether no two pieces may share a node.
    exclusive
        Whether it has its nodes to itself, and is charged for all that they have.
    gpu_types
        Models of GPUs that it may have; empty for all.
    features
        Labels that its nodes must have.
    nodes, not_nodes
        Names of the nodes that it may use (empty for all), and of those that it may not.
    one_node
        Whether all pieces must be on one node.
    reservation
        The reservation that it is submitted to, or None.
    after, after_all
        Jobs that must come first, and whether all of them or one.
    blocked
        Why it may not start whatever is free, in the host's words; None if it may.
    reason
        The code that the host prints for a job that waits.
    job_array, array_most
        The job array that it is a task of, and how many of its tasks may run at once.
    licences
        Licences that it holds while it runs.
    slices
        How its nodes are grouped by racks.
    part, share
        The part of a GPU that each piece has, or the fraction, in place of whole GPUs.
    preemptible
        Whether it may be stopped.
    told
        Whether all that it asks of its nodes is told here.
    per_gpu
        Whether it asks for cores or memory for each GPU, and so for more of them with more GPUs.
    restarts
        How often it has been started anew.
    on
        For a running job, the number of its pieces on each node, by name.
    held
        For a running job, what it holds on each node, where that is not `per` for each piece.
    """

    id: str
    name: str | None = None
    user: str | None = None
    tenant: str | None = None
    comment: str = ""
    partitions: tuple[str, ...] = ()
    priority: str | None = None
    rank: float | None = None
    submit_s: float = 0.0
    eligible_s: float | None = None
    start_s: float | None = None
    limit_s: float | None = None
    ends_s: float | None = None
    count: int = 1
    least: int | None = None
    per: dict[str, float] = {}
    own_nodes: bool = False
    exclusive: bool = False
    gpu_types: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    not_nodes: tuple[str, ...] = ()
    one_node: bool = False
    reservation: str | None = None
    after: tuple[After, ...] = ()
    after_all: bool = True
    blocked: str | None = None
    reason: str | None = None
    job_array: str | None = None
    array_most: int | None = None
    licences: dict[str, float] = {}
    slices: Slices | None = None
    part: str | None = None
    share: float | None = None
    preemptible: bool = True
    told: bool = True
    per_gpu: bool = False
    restarts: int = 0
    on: dict[str, int] = {}
    held: dict[str, dict[str, float]] = {}

    def holds(self, node: str) -> Mapping[str, float]:
        """Return what the job holds on a node, by resource; nothing if it does not run there."""
        if node in self.held:
            return self.held[node]
        return {of: amount * self.on[node] for of, amount in self.per.items() if node in self.on}

    @property
    def may_run_s(self) -> float:
        """The seconds for which it may run in all, infinite without a time limit."""
        return inf if self.limit_s is None else self.limit_s

    @property
    def gpus(self) -> float:
        """The whole GPUs that it asks for, of all its pieces."""
        return self.count * self.per.get(GPUS, 0.0)

    @property
    def has_gpus(self) -> bool:
        """Whether it asks for GPUs, or for parts of them."""
        return self.per.get(GPUS, 0.0) > 0 or self.part is not None or self.share is not None


class EndedJob(Record, frozen=True, kw_only=True):
    """A job that has ended, with the GPUs that it asked for.

    It progressed for `ran_s` seconds in its last run. It is `whole` if that was its only run, and
    came to its own end: without a failure, a cancellation or a time limit.
    """

    id: str
    name: str | None = None
    user: str | None = None
    gpus: int = 0
    ran_s: float = 0.0
    whole: bool = False


@dataclass
class Noted:
    """What a reader left out, assumed or did not know: each thing counted, with one example."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, what: str, example: str, count: int = 1) -> None:
        """Count one more of a thing, such as "node without GPUs", with an example of it."""
        self.counts[what] = self.counts.get(what, 0) + count
        self.examples.setdefault(what, example)

    def lines(self) -> Iterator[str]:
        """Yield a line for each thing."""
        for what, count in self.counts.items():
            yield f"{count} × {what}, such as {self.examples[what]}"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A cluster as it is now.

    Attributes
    ----------
    source
        Where it was read, for messages.
    system
        The scheduler: ``slurm``, ``kueue``, ``kai``, ``kubernetes`` or ``ronda``.
    policy
        The policy that decides nearest to the scheduler's own rules, as ``--policy`` takes it.
    now_s
        When it was read.
    nodes, jobs
        Its nodes, and the jobs that run or wait. Names and ids are unique.
    ended
        The jobs that have ended of late, if the host still shows them.
    tenants, groups, classes
        Who shares it and within which limits, as in a `Site`. Resources are those of
        `SeenNode.has`, or models of GPUs. Groups name the partitions that jobs name.
    rules
        More fields of the `Site`, such as ``reclaim``.
    licences, licences_taken
        Number of each licence (or of anything else that is counted for all nodes together), and how
        many are held elsewhere.
    noted
        What was left out, assumed or not known.
    """

    source: str
    system: str
    now_s: float
    nodes: tuple[SeenNode, ...]
    jobs: tuple[SeenJob, ...]
    ended: tuple[EndedJob, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    groups: tuple[LimitGroup, ...] = ()
    classes: tuple[PriorityClass, ...] = ()
    rules: Mapping[str, object] = field(default_factory=dict)
    policy: str | None = None
    licences: Mapping[str, float] = field(default_factory=dict)
    licences_taken: Mapping[str, float] = field(default_factory=dict)
    noted: Noted = field(default_factory=Noted)

    def within(self, reservation: str | None) -> "Snapshot":
        """Return the cluster as the jobs of a reservation find it, whose nodes are theirs alone."""
        kept = [node.name for node in self.nodes if reservation and node.reserved == reservation]
        if not kept:
            return self
        nodes = [
            structs.replace(n, leaves_s=None, back_s=None) if n.name in kept else n
            for n in self.nodes
        ]
        jobs = [
            job
            if job.on or job.reservation == reservation
            else structs.replace(job, not_nodes=(*job.not_nodes, *kept))
            for job in self.jobs
        ]
        return replace(self, nodes=tuple(nodes), jobs=tuple(jobs))
