"""The options of a round's jobs as a model of nodes in classes and jobs in forms, and back.

An option of n GPUs in a pool whose largest nodes have M takes n div M slots of a whole node and one
of n mod M GPUs, each with what the job needs of hosts there. Jobs that keep their nodes leave the
rest of them to others.
"""

from dataclasses import dataclass, replace

import numpy as np

from ronda.formulations.allocation.model_data import Case
from ronda.formulations.node_rules.hosts import (
    ROUNDED,
    all_needs,
    binding,
    host_has,
    needs_of,
    resources,
    room_on,
)
from ronda.formulations.node_rules.parts import has_parts
from ronda.formulations.node_rules.shapes import named
from ronda.formulations.options.table import RACK, OptionTable
from ronda.formulations.patterns.model import Coupling, Form, NodeModel, with_equal_ways
from ronda.formulations.positions.variables import largest_nodes
from ronda.formulations.watts import may_sleep, rack_caps
from ronda.instances.base import Floats, Ints, Mask, Rows
from ronda.instances.round import Round


@dataclass(frozen=True, eq=False)
class JobModel:
    """The model of a case, with what its numbers stand for.

    Attributes
    ----------
    case, model
        The case and its model.
    node
        The cluster's node of each node of the model, shape (N,).
    option
        Of each form, the option of the case of each job in each way, shape (n, W).
    kept
        The options of jobs that keep their nodes, shape (n,).
    first
        Whether the node of a slot comes first in a placement, as it bears what the job needs once,
        shape (Q,).
    """

    case: Case
    model: NodeModel
    node: Rows
    option: tuple[Rows, ...]
    kept: Rows
    first: Mask

    def chosen(self, way: Rows) -> Rows:
        """Return the option of the case of each job (J,) with a `way` (J,) or nodes that it keeps.

        It is -1 for other jobs.
        """
        found = self.model.picked(way, self.option)
        found[self.case.job[self.kept]] = self.kept
        return found

    def placements(
        self, job: Rows, slot: Rows, node: Rows
    ) -> dict[int, tuple[tuple[int, int], ...]]:
        """Return pairs (node, GPUs) of each job, given jobs, slots and nodes of the model, (A,)."""
        found = dict[int, tuple[tuple[int, int], ...]]()
        for option in self.kept.tolist():
            state = self.case.table.jobs[self.case.job[option]]
            assert state.allocation is not None
            found[self.case.job.item(option)] = state.allocation.placement
        there, gpus = self.node[node], self.model.size[slot, 0].astype(np.int64)
        order = np.lexsort((there, ~self.first[slot], job))
        for j, n, many in zip(*(own[order].tolist() for own in (job, there, gpus)), strict=True):
            found[j] = (*found.get(j, ()), (n, many))
        return found


def unstated(round: Round, table: OptionTable) -> str | None:
    """Return why patterns of nodes cannot state a round, or None if they can."""
    if may_sleep(round):
        return "nodes may sleep"
    if rack_caps(round.cluster):
        return "racks have power caps"
    if round.leaving:
        return "nodes leave"
    if has_parts(round) or (table.width > 1).any():
        return "jobs may have parts of GPUs"
    jobs, topology = [state.job for state in table.jobs], round.cluster.topology
    racks = np.array([pool.racks for pool in table.pools])
    most = np.array(largest_nodes(topology))
    wide = (table.span == RACK) & (racks[table.pool] > 1) & (table.gpus > most[table.pool])
    if wide.any() or table.rack is not None or any(job.slices is not None for job in jobs):
        return "jobs must be in one rack, or in slices of racks"
    kinds = {rule.name: rule for rule in round.site.neighbourhoods}
    for j, job in enumerate(jobs):
        near = [kinds[name] for name in job.neighbourhoods]
        if any(rule.rule != "apart" or rule.within != "node" for rule in near):
            return "jobs run together, or apart in racks"
        if len(near) > 1 or (near and table.must_run[j]):
            return "jobs are apart from others in two ways, or where they must run"
    own = topology.node_gpus > 0
    smaller = bool((topology.node_gpus < most[topology.node_pool])[own].any())
    if smaller and (any(job.exclusive for job in jobs) or _mixed(table, round, most).any()):
        return "jobs fill nodes that are not the largest"
    if (room_on(round) > host_has(round.cluster) * (1 + ROUNDED)).any():
        return "what runs needs more than hosts have"
    for j in np.flatnonzero(~table.must_run).tolist():
        held = table.jobs[j].allocation
        if held is not None and not _cutalike(held.placement, int(most[held.option.pool])):
            return "jobs run on pieces that new ones would not get"
    return None


def _mixed(table: OptionTable, round: Round, most: Rows) -> Mask:
    """Return whether the largest nodes of its pool do not hold each option, shape (K,)."""
    topology = round.cluster.topology
    largest = np.array(
        [
            np.count_nonzero((topology.node_pool == p) & (topology.node_gpus == size))
            for p, size in enumerate(most.tolist())
        ]
    )
    return np.asarray(table.gpus > (largest * most)[table.pool])


def _cutalike(placement: tuple[tuple[int, int], ...], most: int) -> bool:
    whole, rest = divmod(sum(gpus for _, gpus in placement), most)
    return sorted(gpus for _, gpus in placement) == [rest] * (rest > 0) + [most] * whole


def job_model(case: Case, value: Floats, stays: Mask, use: Floats, coupling: Coupling) -> JobModel:
    """Return the model of a case that patterns can state, with `value` (n,) of each option.

    Running jobs (J,) keep their nodes if they must run or if `stays` is true. Options have a `use`
    (n, C) of what couples jobs besides nodes. Of the options of a job that take the same, the one
    of the greatest value counts.
    """
    table = case.table
    keep = table.must_run | stays
    sets, member = _open_sets(case)
    free, node, count, classes = _classes(case, sets, keep)
    size, supplied, first, slot, times = _slots(case, sets, member, classes)
    some = np.flatnonzero(~keep[case.job] & (value > 0))
    take = np.column_stack([slot, times, use])[some]
    way = np.unique(take, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((-value[some], way, case.job[some]))
    job, way = case.job[some][order], way[order]
    new = (np.diff(job, prepend=-1) != 0) | (np.diff(way, prepend=-1) != 0)
    own = some[order][new]
    options = [own[rows] for rows in with_equal_ways(job[new], way[new])]
    width = 2 if (slot[own, 1] >= 0).any() else 1
    forms = [
        Form(
            slot[at[0], :width],
            times[at[0], :width],
            case.job[at[:, 0]],
            value[at],
            use[at[0]] if use.size else None,
        )
        for at in options
    ]
    kept = np.flatnonzero(keep[case.job] & table.current[case.rows])
    model = NodeModel(
        capacity=free,
        count=count,
        cost=np.zeros(len(count)),
        size=size,
        supplied=supplied,
        forms=tuple(forms),
        group=_groups(case),
        coupling=replace(coupling, limit=coupling.limit - use[kept].sum(axis=0)),
    )
    return JobModel(case, model, node, tuple(options), kept, first)


def _open_sets(case: Case) -> tuple[Mask, Rows]:
    """Return the sets of nodes that jobs may use, (S, N), and the set of each job, (J,)."""
    cluster = case.round.cluster
    asked = [(state.job.nodes, state.job.features) for state in case.table.jobs]
    number = {key: s for s, key in enumerate(dict.fromkeys([((), ()), *asked]))}
    every = np.ones(len(cluster.topology.node_gpus), dtype=bool)
    sets = np.array([named(cluster, *key) if any(key) else every for key in number])
    return sets, np.array([number[key] for key in asked], dtype=np.int64)


def _classes(case: Case, sets: Mask, keep: Mask) -> tuple[Floats, Rows, Ints, Ints]:
    """Return the classes of nodes with equal pools, sets, and amounts left beside jobs that stay.

    These are the amounts (K, R), the cluster's nodes class by class, the numbers of nodes (K,), and
    the pool of each class with whether each set has its nodes (K, 1 + S).
    """
    topology, names = case.round.cluster.topology, resources(case.round.cluster)
    left = np.vstack([topology.node_gpus, host_has(case.round.cluster)])
    for j in np.flatnonzero(keep).tolist():
        state = case.table.jobs[j]
        placement = () if state.allocation is None else state.allocation.placement
        nodes = [node for node, _ in placement]
        left[0, nodes] -= [gpus for _, gpus in placement]
        if names and placement:
            left[1:, nodes] -= needs_of(state.job, names).on(placement)
    up = np.flatnonzero(topology.node_gpus > 0)
    alike = np.vstack([np.maximum(left, 0.0), topology.node_pool, sets])[:, up]
    found, of = np.unique(alike.T, axis=0, return_inverse=True)
    order = np.argsort(of.reshape(-1), kind="stable")
    count = np.bincount(of.reshape(-1), minlength=len(found)).astype(np.int64)
    return found[:, : len(left)], up[order], count, found[:, len(left) :].astype(np.int64)


def _slots(
    case: Case, sets: Mask, member: Rows, classes: Ints
) -> tuple[Floats, Mask, Mask, Rows, Ints]:
    """Return slots and those that each option takes.

    These are sizes (Q, R), the classes that supply each (Q, K), whether its node comes first (Q,),
    and the slots of each option and how many of each, (n, 2).
    """
    names, needs = resources(case.round.cluster), all_needs(case.round)
    alike = needs.reshape(-1, needs.shape[2]).T
    _, one, kind = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    kind, flat = kind.reshape(-1)[case.job], (needs[2] > 0).any(axis=0)[case.job]
    most = np.array(largest_nodes(case.round.cluster.topology))[case.pool]
    whole, rest = np.divmod(case.gpus, most)
    once = flat & (rest == 0)
    # An option takes whole nodes, and a block or a whole node that bears what it needs once.
    gpus = np.column_stack([most, np.where(rest > 0, rest, most)])
    many = np.column_stack([whole - once, (rest > 0) | once])
    bears = np.column_stack([np.zeros_like(flat), flat])
    sort = (case.pool * len(one) + kind) * len(sets) + member[case.job]
    code = (sort[:, None] * (int(most.max(initial=0)) + 1) + gpus) * 2 + bears
    _, at, number = np.unique(code[many > 0], return_index=True, return_inverse=True)
    slot = np.full(code.shape, -1, dtype=np.int64)
    slot[many > 0] = number.reshape(-1)
    option, e = (axis[at] for axis in np.nonzero(many > 0))
    per_gpu, per_node, flat_needs = needs[:, :, one[kind[option]]]
    there = per_gpu * gpus[option, e] + per_node + flat_needs * bears[option, e]
    if names:
        there = there * binding(case.round)[case.pool[option]].T
    size = np.vstack([gpus[option, e], there]).T
    supplied = classes[:, 0] == case.pool[option, None]
    supplied &= classes[:, 1 + member[case.job[option]]].T > 0
    empty = slot[:, 0] < 0  # a slot that is alone comes first
    slot[empty], many[empty] = slot[empty][:, ::-1], many[empty][:, ::-1]
    return size, supplied, once[option] & bears[option, e], slot, many.astype(np.int64)


def _groups(case: Case) -> Rows:
    """Return the neighbourhood of each job, shape (J,), -1 for none."""
    number = {rule.name: g for g, rule in enumerate(case.round.site.neighbourhoods)}
    own = [state.job.neighbourhoods for state in case.table.jobs]
    return np.array([number[names[0]] if names else -1 for names in own], dtype=np.int64)
