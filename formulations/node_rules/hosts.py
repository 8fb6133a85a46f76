"""What nodes have of the resources of hosts, and what jobs need of them.

A job needs an amount for each of its GPUs on a node, an amount on each of its nodes, and an amount
on one of them (`ronda.instances.job.Need`). In a pool a resource *binds* only if some pieces of
jobs that fit into the GPUs of a node could need more of it than the node has left. A resource that
binds nowhere has no row, and placement does not ask for it.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ronda.instances.base import Floats, Mask
from ronda.instances.cluster import Cluster, Pool
from ronda.instances.job import Job, JobState
from ronda.instances.models.cache import per_record
from ronda.instances.round import Round

ROUNDED = 1e-9
"""The amount beyond what a node has that counts as rounding, as a share of what it has."""


@per_record(maxsize=8)
def resources(cluster: Cluster) -> tuple[str, ...]:
    """Return the names of the resources that hosts have, in order of first mention."""
    return tuple(dict.fromkeys(name for group in cluster.node_groups for name in group.has))


@per_record(maxsize=8)
def host_has(cluster: Cluster) -> Floats:
    """Return the amount of each resource of each node that others leave, shape (D, N); read-only.

    Work outside ronda may hold more than a node has; the amount is then negative.
    """
    names, groups = resources(cluster), cluster.node_groups
    counts = [group.count for group in groups]
    rows = [[group.has.get(name, 0.0) for group in groups] for name in names]
    found = np.repeat(np.array(rows, dtype=float).reshape(len(names), len(groups)), counts, axis=1)
    for node, name, amount in cluster.taken:
        found[names.index(name), node] -= amount
    found.flags.writeable = False
    return found


class JobNeeds(NamedTuple):
    """The amounts of each resource that a job needs, (D,) each, as in `Need`."""

    per_gpu: Floats
    per_node: Floats
    flat: Floats

    def piece(self, gpus: float) -> Floats:
        """Return what the job needs on a node with some of its GPUs, without `flat`, (D,)."""
        return self.per_gpu * gpus + self.per_node

    def on(self, placement: Iterable[tuple[int, int]]) -> Floats:
        """Return what the job needs on each node of a placement, shape (D, n)."""
        gpus = [count for _, count in placement]
        found: Floats = self.per_gpu[:, None] * gpus + self.per_node[:, None]
        found[:, gpus.index(min(gpus))] += self.flat
        return found


def needs_of(job: Job, names: tuple[str, ...]) -> JobNeeds:
    """Return what a job needs of the named resources of hosts."""
    found = np.zeros((3, len(names)))
    for name, need in job.needs.items():
        if name in names:
            found[:, names.index(name)] = need.per_gpu, need.per_node, need.flat
    return JobNeeds(*found)


@per_record(maxsize=4)
def room_on(round: Round) -> Floats:
    """Return the most that jobs may take of each resource on each node, shape (D, N); read-only.

    That is what others leave or, if they came later, what running jobs take now.
    """
    names, now = resources(round.cluster), np.zeros_like(host_has(round.cluster))
    for held in round.running if names else ():
        if held.job.needs and held.allocation is not None:
            on = needs_of(held.job, names).on(held.allocation.placement)
            for (node, _), amounts in zip(held.allocation.placement, on.T, strict=True):
                now[:, node] += amounts
    found: Floats = np.maximum(host_has(round.cluster), now)
    found.flags.writeable = False
    return found


@per_record(maxsize=4)
def all_needs(round: Round) -> Floats:
    """Return the needs of all jobs per GPU, per node and flat, shape (3, D, J); read-only."""
    names, jobs = resources(round.cluster), round.jobs
    found = np.zeros((3, len(names), len(jobs)))
    for j, state in enumerate(jobs):
        for name, need in state.job.needs.items():
            if name in names:
                found[:, names.index(name), j] = need.per_gpu, need.per_node, need.flat
    found.flags.writeable = False
    return found


@per_record(maxsize=4)
def binding(round: Round) -> Mask:
    """Return whether each resource of hosts can bind in each pool, shape (P, D).

    The pieces on a node need at most the node's GPUs times the largest need per GPU of a piece.
    """
    cluster, topology = round.cluster, round.cluster.topology
    names = resources(cluster)
    able = np.zeros((len(topology.pools), len(names)), dtype=bool)
    if not names:
        return able
    each = np.zeros(able.shape)
    for state in round.jobs:
        job = state.job
        for p, pool in enumerate(topology.pools) if job.needs else ():
            if job.may_use(pool):
                needs = needs_of(job, names)
                part = job.share or (1 / 7 if job.part else 1.0)
                once = (needs.per_node + needs.flat) / _smallest_piece(state, pool)
                each[p] = np.maximum(each[p], (needs.per_gpu + once) / part)
    size, has = topology.node_gpus, host_has(cluster)
    found = each[topology.node_pool].T * size > has * (1 + ROUNDED)
    found &= (size > 0) & (each[topology.node_pool].T > 0)
    np.logical_or.at(able, topology.node_pool, found.T)
    return able


def _smallest_piece(state: JobState, pool: Pool) -> int:
    """Return a number of GPUs that no piece of a job in a pool is below."""
    job, held, whole = state.job, state.allocation, pool.gpus_per_node
    mixed = pool.gpus < pool.nodes * whole
    least, most = job.min_gpus or job.gpus, job.max_gpus or job.gpus
    sizes = job.sizes or ((job.gpus,) if least == most else ())
    if mixed and most > 1:
        found = 1
    elif sizes:
        found = min(size % whole or whole for size in sizes)
    else:
        found = least if most <= whole else 1
    return min([found, *(gpus for _, gpus in (held.placement if held is not None else ()))])
