"""The running jobs that may be moved or stopped, and the loss that this means."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ronda.formulations.site.min_run import has_minimum, least_run_s
from ronda.instances.base import Index, Mask, NonNegative, Positive, Record
from ronda.instances.errors import InputError
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import SeenJob
from ronda.questions.why.limits import Route
from ronda.questions.why.outlook import FreeRoom

Measure = Literal["lost", "jobs", "users", "stopped"]
Below = Literal["rank", "class", "quota"]


class RoomTerms(Record, frozen=True, kw_only=True):
    """The terms on which room is made.

    Attributes
    ----------
    least
        The harm that counts first: GPU-seconds of work ``lost``, ``jobs`` disturbed, their
        ``users``, or jobs ``stopped``. Among equals the others count in this order.
    most_jobs
        Most jobs to move or stop; by default any number.
    most_gpus
        Most GPUs that these jobs hold; by default any number.
    only_below
        Who may be disturbed: jobs of lower ``rank`` than the job, or of a lower ``class``, or jobs
        that hold more than the ``quota`` of their tenant, which keeps all that is guaranteed to it.
        By default every running job that may be stopped.
    moves_only
        Whether jobs are moved alone, and none is stopped.
    checkpoint_s
        Longest time in seconds between two checkpoints of a job, beyond which it loses no work. By
        default a disturbed job loses all since it started.
    """

    least: Measure = "lost"
    most_jobs: Index | None = None
    most_gpus: NonNegative | None = None
    only_below: Below | None = None
    moves_only: bool = False
    checkpoint_s: Positive | None = None

    @property
    def order(self) -> list[Measure]:
        """All measures of harm, the first to count first."""
        every: list[Measure] = ["lost", "jobs", "users", "stopped"]
        return [self.least, *(one for one in every if one != self.least)]


ANY_TERMS = RoomTerms()
"""The terms that keep no job which may be stopped."""


class Block(NamedTuple):
    """A part of a job that is wholly on one node: its pieces, and what they hold by resource."""

    pieces: int
    holds: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Loose:
    """A running job that may be moved or stopped.

    Attributes
    ----------
    at, user
        Its place in `FreeRoom.running`, and its user, or its tenant if no user is told, or None.
    gpus, lost_gpu_s
        GPUs that it holds, and GPU-seconds of work that it loses if it is moved or stopped.
    blocks, apart
        Its blocks with their numbers, empty if it cannot move; whether no two may share a node.
    nodes
        The nodes that it may move to, shape (N,).
    """

    at: int
    job: SeenJob
    gpus: float
    lost_gpu_s: float
    user: str | None
    blocks: tuple[tuple[Block, int], ...]
    apart: bool
    nodes: Mask


def loose_jobs(outlook: FreeRoom, job: SeenJob, terms: RoomTerms) -> list[Loose]:
    """Return the running jobs that may be moved or stopped for a job.

    Jobs stay that may not be stopped, that have run less than their tenant or class protects, or
    that the terms keep.
    """
    below, nodes_for, limits = _below(outlook, job, terms), _targets(outlook), outlook.limits
    gpus, now_s, found = limits.held(GPUS), outlook.snapshot.now_s, list[Loose]()
    protected = has_minimum(limits.site)
    for at, one in enumerate(outlook.running):
        ran_s = max(0.0, now_s - (one.start_s or 0.0))
        over = not one.on or outlook.ends[at] <= now_s
        if over or not one.preemptible or not below(one):
            continue
        if protected and ran_s < least_run_s(limits.site, limits.as_job(one, Route())):
            continue
        lost_s = ran_s if terms.checkpoint_s is None else min(ran_s, terms.checkpoint_s)
        found.append(
            Loose(
                at=at,
                job=one,
                gpus=float(gpus[at]),
                lost_gpu_s=float(gpus[at]) * lost_s,
                user=one.user or one.tenant,
                blocks=_blocks(one),
                apart=one.own_nodes or one.exclusive,
                nodes=nodes_for(one, float(outlook.ends[at])),
            )
        )
    return found


def _below(outlook: FreeRoom, job: SeenJob, terms: RoomTerms) -> Callable[[SeenJob], bool]:
    """Return the test of whether a running job may be disturbed by its rank, class or tenant."""
    if terms.only_below == "rank":
        rank = job.rank
        if rank is None:
            raise InputError(f"job {job.id}", "no rank of its own", "--only-below class or quota")
        return lambda one: one.rank is not None and one.rank < rank
    if terms.only_below == "class":
        classes = {each.name: each.rank for each in outlook.snapshot.classes}
        own = classes.get(job.priority or "")
        if own is None:
            raise InputError(f"job {job.id}", "no class with a rank", "--only-below rank or quota")
        return lambda one: classes.get(one.priority or "", own) < own
    if terms.only_below == "quota":
        tenants = {tenant.name for tenant in outlook.snapshot.tenants}
        if not tenants:
            raise InputError("--only-below", "no tenants", "a cluster whose tenants are told")
        return lambda one: one.tenant in tenants
    return lambda _: True


def _blocks(job: SeenJob) -> tuple[tuple[Block, int], ...]:
    """Return the blocks of a job; a job in slices within racks has none, as it does not move."""
    if job.slices is not None:
        return ()
    if job.exclusive or job.held:
        each = Counter[Block]()
        for name, pieces in job.on.items():
            holds = {r: amount * pieces for r, amount in job.per.items()}
            if name in job.held and not (job.exclusive and holds):
                holds = job.held[name]
            each[Block(pieces, tuple(sorted(holds.items())))] += 1
        return tuple(each.items())
    count = sum(job.on.values())
    pieces, blocks = (count, 1) if job.one_node else (1, count)
    holds = {r: amount * pieces for r, amount in job.per.items()}
    return ((Block(pieces, tuple(sorted(holds.items()))), blocks),)


def _targets(outlook: FreeRoom) -> Callable[[SeenJob, float], Mask]:
    """Return the nodes (N,) that a running job which ends at a time may move to, as a function.

    They are of the model of GPUs that the job has, and not kept for the jobs of another
    reservation. A job on nodes of several models does not move.
    """
    seen, now_s = outlook.snapshot.nodes, outlook.snapshot.now_s
    kinds = np.array([node.gpu_type or "" for node in seen])

    def of(job: SeenJob, end_s: float) -> Mask:
        own = kinds[[outlook.node[name] for name in job.on]]
        kept = [n.reserved not in (None, job.reservation) and n.leaves_s is None for n in seen]
        may = outlook.may_use(job, job.partitions[0] if job.partitions else None, frozenset())
        may = may & outlook.open(now_s, end_s - now_s) & ~np.array(kept, dtype=bool)
        found: Mask = may & (kinds == own[0]) & (own == own[0]).all()
        return found

    return of
