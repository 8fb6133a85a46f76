"""The limits on what jobs hold together, over time: quotas, groups, licences, job arrays."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ronda.formulations.tenants.lending import SLACK, Loans
from ronda.formulations.tenants.sharers import Cap, Count, Sharers, Tree, resources, sharers
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.job import Job
from ronda.instances.site import GPUS, Site
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot

Amounts = dict[str, float]


class Route(NamedTuple):
    """One of the ways in which a job may run: in a partition, on nodes with GPUs of one model.

    None stands for any; the model of nodes of which none is told is "".
    """

    partition: str | None = None
    model: str | None = None


class LimitCount(NamedTuple):
    """A limit at one moment: its row, the resource, what it allows, holds, and is asked for."""

    row: str
    of: str
    most: float
    held: float
    asks: float

    @property
    def fits(self) -> bool:
        """Whether there is room for what is asked."""
        return not self.asks or self.held + self.asks <= self.most + SLACK * max(1.0, self.most)


@dataclass(frozen=True)
class JointLimit:
    """A limit that a job meets.

    `amounts` (J,) are what the running jobs count in it, and `elsewhere` is what no job of the
    cluster holds. What jobs with time limits may still hold is `timed`.
    """

    row: str
    of: str
    most: float
    amounts: Floats
    asks: float
    timed: bool = False
    elsewhere: float = 0.0

    def at(self, at_s: float, ends: Floats) -> list[LimitCount]:
        """Return the limit at a time; `ends` (J,) say when the running jobs end."""
        held = self.elsewhere + float(self.counts(at_s, ends).sum())
        return [LimitCount(self.row, self.of, self.most, held, self.asks)]

    def counts(self, at_s: float, ends: Floats) -> Floats:
        """Return what each running job counts at a time, shape (J,)."""
        found = np.where(ends > at_s, self.amounts, 0.0)
        if self.timed:
            found[found > 0] *= ends[found > 0] - at_s
        return found

    def relief(self, ends: Floats) -> Iterator[float]:
        """Yield when what running jobs may still hold leaves room, which is before one ends."""
        holding = self.amounts > 0
        spare, amounts, until = self.most - self.asks, self.amounts[holding], ends[holding]
        if self.timed and spare >= 0 and len(until) and np.isfinite(until).all():
            held = np.array([amounts @ np.maximum(until - end, 0.0) for end in until])
            k = int(np.argmax(held <= spare))  # `until` ascends, so that it is the first
            yield float(until[k] - (spare - held[k]) / amounts[k:].sum())


@dataclass(frozen=True)
class Lent:
    """The quota of a resource that a job's tenant, `leaf`, and those above it lend and borrow.

    `held` (J, tenants) is what each running job holds, in the column of its tenant in `leaves`.
    """

    tree: Tree
    of: str
    leaf: str
    leaves: Sequence[str]
    held: Floats
    asks: float

    def at(self, at_s: float, ends: Floats) -> list[LimitCount]:
        """Return the limit of each level at a time."""
        loans = Loans(self.tree, self.of, {})
        for leaf, amount in zip(self.leaves, self.held[ends > at_s].sum(axis=0), strict=True):
            if amount:
                loans.add(leaf, float(amount))
        met = loans.met(self.leaf, self.asks)
        return [LimitCount(row, self.of, most, use, more) for row, most, use, more in met]


class Limits:
    """All limits of a snapshot, of whose jobs J are `running`."""

    def __init__(self, snapshot: Snapshot, running: Sequence[SeenJob]) -> None:
        self.site = Site(tenants=snapshot.tenants, groups=snapshot.groups, classes=snapshot.classes)
        self._snapshot, self._running, self.tree = snapshot, running, Tree(self.site)
        self._node = {node.name: node for node in snapshot.nodes}
        self._known = {tenant.name for tenant in snapshot.tenants}
        self._jobs = [self.as_job(job, _first_way(job)) for job in running]
        waiting = [self.as_job(job, _first_way(job)) for job in snapshot.jobs if not job.on]
        self._sharers = self._numbered([*self._jobs, *waiting])
        self._seen = {_labels(job) for job in waiting}
        leaf = np.array([self.tree.number(job) for job in self._jobs], dtype=np.int64)
        self._members = leaf[:, None] == np.arange(len(self.tree.leaf))
        self._held: dict[str, Floats] = {}

    @property
    def models(self) -> list[str]:
        """The models of GPUs on nodes if limits tell any of them apart, else none."""
        named = set(resources(self.site)) | {of for g in self.site.groups for of in g.most}
        models = {node.gpu_type or "" for node in self._snapshot.nodes}
        return sorted(models) if named & models else []

    def met_by(self, job: SeenJob, way: Route, charged: Amounts) -> Iterator[JointLimit | Lent]:
        """Yield the limits that a waiting job meets, if it is `charged` that in all."""
        asked = self.as_job(job, way)
        known = _labels(asked) in self._seen  # else the limits are those of a job as it is asked of
        for each, numbers in self._sharers if known else self._numbered([*self._jobs, asked]):
            number = each.number(asked)
            for cap in each.caps:
                if cap.first <= number < cap.end:
                    inside = (cap.first <= numbers) & (numbers < cap.end)
                    yield self._capped(cap, job, inside, amount_of(cap.of, charged, way.model))
        for of in resources(self.site) if asked.tenant is not None else ():
            asks = amount_of(of, charged, way.model)
            if asks and asked.tenant is not None:
                held = self.held(of)[:, None] * self._members
                yield Lent(self.tree, of, asked.tenant, list(self.tree.leaf), held, asks)
        for name, amount in job.licences.items():
            held = np.array([one.licences.get(name, 0.0) for one in self._running], dtype=float)
            taken = self._snapshot.licences_taken.get(name, 0.0)
            most = self._snapshot.licences.get(name, 0.0)
            yield JointLimit(f"licence[{name}]", name, most, held, amount, elsewhere=taken)
        if job.job_array is not None and job.array_most is not None:
            tasks = np.array([one.job_array == job.job_array for one in self._running], dtype=float)
            yield JointLimit(f"array[{job.job_array}]", "tasks", job.array_most, tasks, 1.0)

    def _numbered(self, jobs: Sequence[Job]) -> list[tuple[Sharers, Rows]]:
        """Return all limits on some jobs, with the numbers of those that run, shape (J,)."""
        return [
            (each, np.array([each.number(job) for job in self._jobs], dtype=np.int64))
            for each in sharers(self.site, jobs)
        ]

    def _capped(self, cap: Cap, job: SeenJob, inside: Mask, asks: float) -> JointLimit:
        """Return the limit of a tenant or a group, of which the running jobs `inside` (J,) are."""
        if cap.counts is Count.JOBS:
            return JointLimit(cap.name, "jobs", cap.most, inside.astype(float), 1.0)
        timed, held = cap.counts is Count.TIME, self.held(cap.of) * inside
        if cap.counts is Count.FIRM:
            held = held * [not one.preemptible for one in self._running]
            asks *= not job.preemptible
        if timed and asks:
            asks *= job.may_run_s
        return JointLimit(cap.name, cap.of, cap.most, held, asks, timed)

    def held(self, of: str) -> Floats:
        """Return what each running job holds of a resource, shape (J,)."""
        if of not in self._held:
            found = [sum(self._on(job, name, of) for name in job.on) for job in self._running]
            self._held[of] = np.array(found, dtype=float)
        return self._held[of]

    def _on(self, job: SeenJob, name: str, of: str) -> float:
        node = self._node[name]
        return amount_of(of, held_on(job, node), node.gpu_type)

    def within(self, job: SeenJob, tenant: str) -> bool:
        """Return whether a job is of a tenant, or of one below it."""
        return job.tenant in self._known and tenant in self.tree.path(str(job.tenant))

    def as_job(self, job: SeenJob, way: Route) -> Job:
        """Return a job with all that limits ask of it."""
        return Job(
            id=job.id,
            submit_s=0.0,
            profile="-",
            partition=way.partition or "default",
            user=job.user,
            tenant=job.tenant if job.tenant in self._known else None,
            priority=job.priority,
            limit_s=job.limit_s or None,
        )


def _labels(job: Job) -> tuple[str | None, ...]:
    return job.id, job.user, job.tenant, job.partition, job.priority


def _first_way(job: SeenJob) -> Route:
    return Route(job.partitions[0] if job.partitions else None)


def amount_of(of: str, amounts: Mapping[str, float], model: str | None) -> float:
    """Return the amount of a limit's resource in what is held on nodes with GPUs of a model."""
    if of in amounts:
        return amounts[of]
    return amounts.get(GPUS, 0.0) if model == of else 0.0


def held_on(job: SeenJob, node: SeenNode) -> Mapping[str, float]:
    """Return what a running job holds on a node: all of it if it has its nodes to itself."""
    return node.has if job.exclusive else job.holds(node.name)
