"""The nodes of jobs: those that they name, and what neighbours leave them."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ronda.formulations.node_rules.best_fit import kept
from ronda.formulations.node_rules.neighbours import Neighbours
from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.options.table import OptionTable
from ronda.formulations.topology import regions
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.models.cache import per_record
from ronda.instances.round import Round


def closed_by_name(round: Round, state: JobState, option: Option) -> Mask | None:
    """Return the nodes (N,) that a job does not name, or without a feature that it asks for."""
    nodes, features = state.job.nodes, state.job.features
    return ~named(round.cluster, nodes, features) if nodes or features else None


@per_record(maxsize=256)
def named(cluster: Cluster, nodes: tuple[int, ...], features: tuple[str, ...]) -> Mask:
    """Return whether each node is one of `nodes`, if any, and has all `features`, (N,)."""
    needed = set(features)
    able = np.array([needed <= set(group.features) for group in cluster.node_groups])
    found: Mask = able[cluster.topology.node_group]
    if nodes:
        found &= np.isin(np.arange(len(found)), nodes)
    return found


def named_rows(round: Round, table: OptionTable, values: Floats, sheet: Sheet) -> None:
    """State Σ_k n_k x_k ≤ GPUs of a set of nodes, for all options that must be on these.

    There is a row ``named_nodes[pool,i]`` for each set that any job names, without the GPUs there
    of other jobs that must run. An option that may go on elsewhere does not count.
    """
    topology = round.cluster.topology
    asked = {(s.job.nodes, s.job.features) for s in table.jobs} - {((), ())}
    sets = {key: named(round.cluster, *key) for key in asked}
    for p, pool in enumerate(table.pools) if sets else ():
        own = topology.node_pool == p
        distinct = {(able & own).tobytes(): able & own for able in sets.values()}
        some = [able for able in distinct.values() if (able != own).any()]
        for i, able in enumerate(sorted(some, key=lambda nodes: nodes.tolist(), reverse=True)):
            inside = {key for key, other in sets.items() if not (other & own & ~able).any()}
            bound = [(s.job.nodes, s.job.features) in inside for s in table.jobs]
            rows = np.flatnonzero((table.pool == p) & np.array(bound)[table.job])
            rows = rows[[not _elsewhere(table, k, able) for k in rows.tolist()]]
            jobs = set(table.job[rows].tolist())
            left = topology.node_gpus[able].sum() - sum(
                gpus
                for j in np.flatnonzero(table.must_run).tolist()
                if j not in jobs and (held := table.jobs[j].allocation) is not None
                for node, gpus in held.placement
                if able[node]
            )
            use = table.gpus[rows] / table.width[rows]
            if use.any():
                sheet.state(f"named_nodes[{pool.name},{i}]", rows, use, float(left))


def _elsewhere(table: OptionTable, k: int, able: Mask) -> bool:
    held = table.jobs[table.job.item(k)].allocation if table.current[k] else None
    return held is not None and not all(able[node] for node, _ in held.placement)


def neighbour_rows(round: Round, table: OptionTable, values: Floats, sheet: Sheet) -> None:
    """State that jobs which are together fit into one region, and that those apart have one each.

    Jobs together have Σ_k n_k x_k ≤ GPUs of the largest region. Jobs apart have Σ_k r_k x_k ≤
    number of regions, where r_k are the fewest that hold the GPUs of k. What runs may go on, so
    that no limit is below what all running jobs hold. The rows are ``together[name]`` and
    ``apart[name]``.
    """
    topology = round.cluster.topology
    for rule in round.site.neighbourhoods:
        bound = np.array([rule.name in s.job.neighbourhoods for s in table.jobs])
        rows = np.flatnonzero(bound[table.job])
        at = regions(round.cluster, rule.within)
        size = np.bincount(at[at >= 0], topology.node_gpus[at >= 0])
        most = int(size.max(initial=0))
        if rule.rule == "together":
            use = table.gpus[rows] / table.width[rows]
            limit = max(float(most), float(use[table.current[rows]].sum()))
        else:
            outside = np.count_nonzero((at < 0) & (topology.node_gpus > 0))
            use = -(-table.gpus[rows] // max(most, 1)).astype(float)
            limit = float("inf") if outside else float(np.count_nonzero(size))
            limit += _shared(table, rows, at)
        if np.isfinite(limit) and len(rows):
            sheet.state(f"{rule.rule}[{rule.name}]", rows, use, limit)


def _shared(table: OptionTable, rows: Rows, at: Rows) -> int:
    """Return how many jobs run in a region beyond the first one there, in all regions."""
    there = Counter[int]()
    for k in rows[table.current[rows]].tolist():
        held = table.jobs[table.job.item(k)].allocation
        there.update(set(at[[n for n, _ in held.placement]].tolist()) if held else ())
    return sum(jobs - 1 for jobs in there.values())


class Shapes:
    """The account of jobs on nodes, with their shapes and neighbours."""

    def __init__(self, round: Round) -> None:
        self._round, self._neighbours = round, Neighbours.of(round)

    @classmethod
    def of(cls, round: Round) -> "Shapes | None":
        """Return the account of a round, or None if no job has a shape or neighbours."""
        jobs = (state.job for state in round.jobs)
        alone = (j.one_node or j.exclusive or j.slices or j.neighbourhoods for j in jobs)
        return cls(round) if any(alone) else None

    def fits(self, state: JobState, given: Allocation) -> bool:
        """Return whether a job has its shape on its nodes, and may be beside those there."""
        if not given.placement:
            return True  # asked before nodes are chosen
        job, counts = state.job, [gpus for _, gpus in given.placement]
        if job.one_node and len(counts) > 1:
            return False
        if self._neighbours is not None and not self._neighbours.welcome(job, given.placement):
            return False
        if job.slices is None and not job.exclusive:
            return True
        topology = self._round.cluster.topology
        nodes = [node for node, _ in given.placement]
        if counts != topology.node_gpus[nodes].tolist():
            return False
        return job.slices is None or self._sliced(job, nodes)

    def _sliced(self, job: Job, nodes: Sequence[int]) -> bool:
        slices, cluster = job.slices, self._round.cluster
        assert slices is not None
        within = regions(cluster, slices.within)[nodes]
        if (within < 0).any():
            return False
        if slices.together is not None:
            wide: Rows = regions(cluster, slices.together)[nodes]
            if wide.min() < 0 or wide.min() < wide.max():
                return False
        return kept(slices, np.unique(within, return_counts=True)[1].tolist())

    def take(self, state: JobState, given: Allocation) -> None:
        """Add a job on its nodes."""
        if self._neighbours is not None:
            self._neighbours.take(state.job, given.placement)
