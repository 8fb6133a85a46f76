"""The variables of the exact model, which are options on fresh nodes or in place.

The current option of a job has two variables. It *stays* on its nodes with its value, or *moves*
with its value less the loss by the restart (`loss_of_moves`); where rules read racks, it stays in
its own rack and moves to others. Every other option takes nodes like a job that starts. It has
q = gpus div M whole nodes, each empty and of the pool's largest size (M GPUs), and a block of
gpus mod M GPUs on one more node. If the pool's largest nodes cannot hold a job in this way, the job
is *mixed* and takes the fewest empty nodes that hold it, of any size.

Equal nodes form groups, with the GPUs that jobs hold on them (`nodes_of`).
"""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from ronda.formulations.allocation.model_data import Case
from ronda.formulations.allocation.model_data import restrict as restrict_case
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import RACK, SEVERAL, in_place
from ronda.formulations.watts import classes_of_nodes
from ronda.instances.base import Mask, Rows
from ronda.instances.cluster import Topology

NODE_SHARE = 1e-5
"""The price of a node in use, as a share of the largest value of an option. Among plans of equal
value, it prefers those that leave more nodes empty for wide jobs."""


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways to place the options of a `case`, in arrays (n,) over the variables of the case.

    ``stay`` tells whether a way stays in place. The other ways take ``whole`` nodes and a block of
    ``rest`` GPUs or, if ``mixed``, ``whole`` empty nodes of any size; if ``tied``, all are in one
    rack. A node in use costs ``node_price``. If moves and nodes only break ties, their total cost
    is at most ``ties``; otherwise ``ties`` is None.
    """

    case: Case
    stay: Mask
    whole: Rows
    rest: Rows
    mixed: Mask
    tied: Mask
    node_price: float
    ties: float | None


def ways(case: Case, ties: float | None = None) -> Ways:
    """Return the ways to place the options of a case; moves and nodes cost at most `ties`."""
    table, round_ = case.table, case.round
    now, must = table.current[case.rows], table.must_run[case.job]
    here = now & in_place(table, case.rows, [state.allocation for state in table.jobs])
    moves, values = np.flatnonzero(now & ~must), np.zeros(len(table))
    values[case.rows] = case.value
    losses = np.array(
        [
            loss_of_moves(round_, table, values, case.rows[[i]], {table.jobs[j].job.id})
            for i, j in zip(moves.tolist(), case.job[moves].tolist(), strict=True)
        ]
    )
    node_price = NODE_SHARE * case.scale
    if ties is not None:
        losses *= ties / 2 / max(losses.sum(), ties / 2) if ties else 0.0
        node_price = ties / 2 / max(1, len(round_.cluster.topology.node_gpus))
    moved = case.value.copy()
    moved[moves] -= losses
    moves = moves[here[moves] & (case.rack[moves] != SEVERAL)]
    rows = np.concatenate([case.rows, case.rows[moves]])
    stay = np.concatenate([here, np.zeros(len(moves), dtype=bool)])
    order = np.lexsort((~stay, rows))
    wide = replace(
        case,
        rows=rows[order],
        rack=np.concatenate([case.rack, case.rack[moves]])[order],
        value=np.concatenate([np.where(here, case.value, moved), moved[moves]])[order],
        moved=(~stay & table.current[rows])[order],
    )
    return _pieces(wide, stay[order], node_price, ties)


def restrict_ways(found: Ways, kept: Rows) -> Ways:
    """Return only the ways with the given ascending indices."""
    some = np.zeros(len(found.stay), dtype=bool)
    some[kept] = True
    columns = {
        name: getattr(found, name)[kept] for name in ("stay", "whole", "rest", "mixed", "tied")
    }
    return replace(found, case=restrict_case(found.case, some), **columns)


def largest_nodes(topology: Topology) -> list[int]:
    """Return the GPUs of each pool's largest node in service, 1 if none is in service, (P,)."""
    most = np.ones(len(topology.pools), dtype=np.int64)
    np.maximum.at(most, topology.node_pool, topology.node_gpus)
    return [int(gpus) for gpus in most]


def _pieces(case: Case, stay: Mask, node_price: float, ties: float | None) -> Ways:
    """Return the ways with the number of whole nodes and the block of every option."""
    topology = case.round.cluster.topology
    most = largest_nodes(topology)
    whole, rest = np.divmod(case.gpus, np.array(most)[case.pool])
    mixed = np.zeros(len(whole), dtype=bool)
    for p in range(len(topology.pools)):
        sizes = np.sort(topology.node_gpus[topology.in_service(p)])[::-1]
        if (sizes == most[p]).all():
            continue
        own = np.flatnonzero((case.pool == p) & (whole > 0))
        for i in own.tolist():
            q, r = int(whole[i]), int(rest[i])
            nodes = sizes[: q + (r > 0)]
            if len(nodes) < q + (r > 0) or nodes[q - 1] < nodes[0] or (r and nodes[-1] < r):
                mixed[i] = True
                whole[i] = 1 + np.searchsorted(np.cumsum(sizes), case.gpus[i])
                rest[i] = 0
    several = np.array([pool.racks for pool in topology.pools])[case.pool] > 1
    tied = ~stay & several & ((case.table.span[case.rows] == RACK) | (case.rack >= 0))
    return Ways(case, stay, whole, rest, mixed, tied, node_price, ties)


Held = tuple[tuple[int, int], ...]
"""The jobs that may stay on a node, as pairs of variable and GPUs there, the most GPUs first."""


@dataclass(frozen=True, slots=True)
class Group:
    """The nodes of one pool, rack, size and node class of the case (with index ``kind``)."""

    pool: int
    rack: int
    size: int
    kind: int
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Nodes:
    """The groups of nodes, and per node the GPUs of jobs that may stay."""

    groups: tuple[Group, ...]
    held: dict[int, Held]


def nodes_of(found: Ways) -> Nodes:
    """Return the nodes of a round, with the GPUs of jobs that may stay."""
    case = found.case
    topology = case.round.cluster.topology
    alike: defaultdict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    for n, (pool, rack, size, kind) in enumerate(
        zip(
            topology.node_pool.tolist(),
            topology.node_rack.tolist(),
            topology.node_gpus.tolist(),
            classes_of_nodes(case.round),
            strict=True,
        )
    ):
        if size:  # in service
            alike[pool, rack, size, kind].append(n)
    held: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for i in np.flatnonzero(found.stay).tolist():
        allocation = case.table.jobs[int(case.job[i])].allocation
        assert allocation is not None
        for node, gpus in allocation.placement:
            held[node].append((i, gpus))
    return Nodes(
        tuple(Group(*key, tuple(nodes)) for key, nodes in alike.items()),
        {n: tuple(sorted(jobs, key=lambda job: -job[1])) for n, jobs in held.items()},
    )
