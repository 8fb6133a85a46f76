"""The jobs of a queue that are judged, and all that is held at its true time beside them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.rules.shapes import JobNodes
from ronda.instances.traces.audit.pools import able
from ronda.instances.traces.recorded import Recorded, RecordedRun

Amounts = tuple[float, ...]
Start = tuple[float, tuple[int, ...]]
"""When a job starts, and on which nodes."""
Starts = dict[int, Start]
"""Starts of jobs by number."""


class HeldUse(NamedTuple):
    """What one run holds of one node: its devices first, then resources of hosts."""

    node: int
    since_s: float
    until_s: float
    amounts: Amounts
    promised_s: float


class Shape(NamedTuple):
    """The amounts that a job needs on each of its nodes, their number, and the nodes it may use."""

    amounts: Amounts
    nodes: int
    allowed: tuple[int, ...]

    def as_one(self) -> "Shape":
        """Return the shape on a single node, of number 0."""
        return Shape(tuple(self.nodes * amount for amount in self.amounts), 1, (0,))


@dataclass(frozen=True)
class JudgedJobs:
    """The jobs that are judged, as arrays in order of their starts, and the use of all others.

    Attributes
    ----------
    ready_s, start_s, lasts_s, limit_s, weight, size
        When each could start, within the window; when it did; for how long it held its nodes; its
        time limit, which may be infinite; its weight; and its devices on all nodes. Shape (J,).
    rank
        The place of each in the queue by priority, then by the time from which it could start.
    where, judged
        The nodes on which each ran, and what it held of them.
    others
        What all other jobs held of nodes.
    hosts
        Resources of hosts in the order in which amounts have them, after the devices.
    held
        Number of jobs that could not start when they were submitted, and for how long.
    apart
        Jobs of the queue that are not judged, by reason, and what they waited.
    """

    ids: tuple[str, ...]
    shapes: tuple[Shape, ...]
    ready_s: Floats
    start_s: Floats
    lasts_s: Floats
    limit_s: Floats
    weight: Floats
    rank: tuple[int, ...]
    size: Floats
    where: tuple[tuple[int, ...], ...]
    judged: tuple[tuple[HeldUse, ...], ...]
    others: tuple[HeldUse, ...]
    hosts: tuple[str, ...]
    states: tuple[str, ...]
    held: tuple[int, float]
    apart: Mapping[str, tuple[int, float]]

    @property
    def waited_s(self) -> float:
        """What the jobs waited."""
        return self.cost(self.start_s)

    def cost(self, start_s: Floats) -> float:
        """Return what the jobs would wait with other starts."""
        return float(self.weight @ (start_s - self.ready_s))

    def wait_of(self, starts: Starts) -> float:
        """Return what the jobs would wait; it is infinite if one of them has no start."""
        if len(starts) < len(self.ids):
            return inf
        return self.cost(np.array([starts[k][0] for k in range(len(starts))]))

    @property
    def happened(self) -> Starts:
        """The recorded starts."""
        return dict(enumerate(zip(self.start_s.tolist(), self.where, strict=True)))

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that any of the jobs may use."""
        return tuple(sorted({node for shape in set(self.shapes) for node in shape.allowed}))


def labels_of(instance: Instance) -> frozenset[str]:
    """Return the labels of nodes, by which partitions with common nodes are told apart."""
    return frozenset(label for g in instance.cluster.node_groups for label in g.features)


def names_of(job: Job, labels: frozenset[str]) -> tuple[str, ...]:
    """Return the names of the queues that a job is in, from the widest to the narrowest.

    Of partitions of a log that have nodes in common, a job has its own as a feature, unless that
    has all of the nodes.
    """
    several = job.partition.split("+")
    own = next((label for label in job.features if label in several), "")
    own = own or "+".join(name for name in several if name not in labels) or job.partition
    named = [job.partition, own, f"{own}/{job.tenant}" if job.tenant else own]
    return tuple(dict.fromkeys(named))


def judged_jobs(
    instance: Instance, recorded: Recorded, queue: str, window_s: tuple[float, float]
) -> JudgedJobs:
    """Return the jobs of a queue that started in a window, beside all others at their true times.

    Jobs that ran more than once, whose run was cut or goes on, or whose nodes are not known, are
    held at their true times as well.
    """
    hosts = sorted({name for job in instance.jobs for name in job.needs})
    ranks = {each.name: each.rank for each in instance.site.classes}
    allowed, found = _seen_nodes(instance, recorded), list[tuple[Job, RecordedRun, list[HeldUse]]]()
    others, apart = list[HeldUse](), defaultdict[str, list[float]](list)
    labels = labels_of(instance)
    for job in instance.jobs:
        runs = recorded.runs.get(job.id, ())
        uses = [_uses(job, run, hosts, recorded.until_s) for run in runs]
        within = [run for run in runs if window_s[0] <= run.start_s <= window_s[1]]
        asked = bool(within) and queue in names_of(job, labels)
        why = _why_apart(runs) if asked else ""
        if why:
            apart[why].append(max(0.0, within[0].start_s - ready_s(job, window_s[0])))
        elif asked:
            found.append((job, runs[0], uses[0]))
            continue
        others += (use for each in uses for use in each)
    found.sort(key=lambda each: (each[1].start_s, ready_s(each[0], window_s[0])))
    jobs = [job for job, _, _ in found]
    ready = [ready_s(job, window_s[0]) for job in jobs]
    first = [(-ranks.get(j.priority or "", 0), r) for j, r in zip(jobs, ready, strict=True)]
    order = sorted(range(len(jobs)), key=lambda k: (first[k], jobs[k].submit_s))
    shapes = list[Shape]()
    for job, _, own in found:
        most = tuple(map(max, zip(*(use.amounts for use in own), strict=True)))
        shapes.append(Shape(most, len(own), allowed[_kind(job)]))
    holds = [job.eligible_s - job.submit_s for job in jobs if job.eligible_s is not None]
    start_s = np.array([run.start_s for _, run, _ in found])
    return JudgedJobs(
        ids=tuple(job.id for job in jobs),
        shapes=tuple(shapes),
        ready_s=np.minimum(np.array(ready), start_s),
        start_s=start_s,
        lasts_s=np.array([(run.end_s or 0.0) - run.start_s for _, run, _ in found]),
        limit_s=np.array([job.limit_s or inf for job in jobs]),
        weight=np.array([job.weight for job in jobs]),
        rank=tuple(np.argsort(order).tolist()),
        size=np.array([float(sum(run.held.values())) for _, run, _ in found]),
        where=tuple(tuple(use.node for use in own) for _, _, own in found),
        judged=tuple(tuple(own) for _, _, own in found),
        others=tuple(others),
        hosts=tuple(hosts),
        states=tuple(run.state for _, run, _ in found),
        held=(len(holds), sum(holds)),
        apart={why: (len(own), sum(own)) for why, own in apart.items()},
    )


def ready_s(job: Job, since_s: float) -> float:
    """Return when a job could start, or the beginning of the window if that is later."""
    return max(since_s, able(job))


def _why_apart(runs: Sequence[RecordedRun]) -> str:
    """Return why a job with a run in the window is not judged, or an empty text."""
    if len(runs) > 1:
        return "ran more than once, so that a requeue may hide an earlier wait"
    if runs[0].end_s is None:
        return "still ran when the log ended, so that their length is not known"
    cut = ("PREEMPTED", "NODE_FAIL", "REQUEUED", "BOOT_FAIL", "REQUEUE_HOLD")
    if runs[0].state.split(" ")[0] in cut:
        return "were stopped by the cluster, so that their length is not known"
    return "" if runs[0].held else "ran on nodes that are not known"


def _uses(job: Job, run: RecordedRun, hosts: list[str], until_s: float) -> list[HeldUse]:
    end_s = max(run.start_s, until_s) if run.end_s is None else run.end_s
    least = min(run.held, key=lambda node: (run.held[node], node), default=-1)
    uses = []
    for node, gpus in run.held.items():
        own = [float(gpus)]
        for name in hosts:
            need = job.needs.get(name)
            flat = need.flat if need and node == least else 0.0
            own.append(gpus * need.per_gpu + need.per_node + flat if need else 0.0)
        promised_s = run.start_s + (job.limit_s or inf)
        uses.append(HeldUse(node, run.start_s, end_s, tuple(own), promised_s))
    return uses


def _kind(job: Job) -> tuple[object, ...]:
    """Return what decides on which nodes a job may run, as far as the log tells."""
    return job.partition, job.features, job.gpu_types, job.nodes, job.tenant, job.priority


def _seen_nodes(instance: Instance, recorded: Recorded) -> dict[object, tuple[int, ...]]:
    seen = defaultdict[object, set[int]](set)
    for job in instance.jobs:
        for run in recorded.runs.get(job.id, ()):
            seen[_kind(job)].update(run.held)
    return {kind: tuple(sorted(nodes)) for kind, nodes in seen.items()}


def on_given_nodes(jobs: JudgedJobs, instance: Instance) -> JudgedJobs:
    """Return jobs that may use all nodes that the cluster has for them, not only those seen."""
    own, nodes = {job.id: job for job in instance.jobs}, JobNodes(instance.cluster)
    shapes = list[Shape]()
    for name, shape in zip(jobs.ids, jobs.shapes, strict=True):
        allowed = {*nodes.of(own[name], named=True, labelled=True), *shape.allowed}
        shapes.append(shape._replace(allowed=tuple(sorted(allowed))))
    return replace(jobs, shapes=tuple(shapes))
