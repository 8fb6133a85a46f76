"""The occupancy of nodes as classes of nodes with equal contents and of jobs that move alike.

A job on one node moves as one block of GPUs. A *wide* job, on several nodes, is cut as everywhere
(`ronda.formulations.positions.variables`): into q = gpus div M whole nodes of the pool's largest
size (M GPUs) and a block of gpus mod M. Jobs that may not be stopped stay, as do those on a part of
a GPU. Nobody comes to a node that leaves, and no sleeping node wakes. A move loses the pause that
it causes (`JobState.pause_at`), less the rest of a pause that the job is already in.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from ronda.formulations.node_rules.hosts import binding
from ronda.formulations.placement.book import NodeBook
from ronda.formulations.positions.variables import Group, largest_nodes
from ronda.formulations.topology import regions
from ronda.formulations.watts import extra_gpu_w, node_w, rack_caps
from ronda.instances.base import Floats, Mask
from ronda.instances.check.site.min_run import may_change
from ronda.instances.clock import watched
from ronda.instances.job import Job, JobState
from ronda.instances.round import Round

Saving = Literal["nodes", "racks", "watts"]
"""The saving that a node without jobs counts for: one node, or the watts that it saves asleep.

With ``racks``, racks without jobs count too, each for less than a node (`rack_worth`).
"""

Placement = tuple[tuple[int, int], ...]
"""Pairs of nodes and GPUs there."""

Kind = tuple[int, int, float]
"""The kind of a block: its pool, its GPUs and the watts per GPU (0 if no rack has a power cap)."""


@dataclass(frozen=True, slots=True)
class Mover:
    """A job that may move, in ``pieces`` (GPUs, number of pieces).

    In each rack it has a multiple of ``slice`` of its ``pieces`` (0: any number), or at most one
    such multiple if they ``spread``. A move loses ``lost_gpu_s`` GPU-seconds. On each of its nodes
    the job takes its ``needs`` of the resources of hosts that can bind.
    """

    job: str
    kind: Kind
    placement: Placement
    lost_gpu_s: float
    pieces: tuple[tuple[int, int], ...]
    slice: int
    spread: bool = False
    needs: tuple[tuple[float, ...], ...] = ()


class KnapsackStage(NamedTuple):
    """Jobs on a node that move alike: the jobs of a kind, or the part of wide job ``wide``.

    ``lost`` are the GPU-seconds that each job loses by a move, ascending. If only some jobs move,
    the last ones stay.
    """

    gpus: int
    each_w: float
    lost: tuple[float, ...]
    wide: int = -1


class Content(NamedTuple):
    """The common contents of nodes in a group: GPUs that always stay, and stages of jobs."""

    group: int
    fixed: int
    stages: tuple[KnapsackStage, ...]


@dataclass(frozen=True)
class Occupancy:
    """The occupancy of nodes, in groups of equal nodes.

    Attributes
    ----------
    groups, worth
        Groups of equal nodes, and the saving that each node counts for without jobs. A group is in
        one rack if `racked`; otherwise its ``rack`` is -1.
    contents
        Nodes, keyed by their content.
    blocks, wide
        For each node, the movable jobs on that node alone, keyed by kind and ordered as in
        `KnapsackStage`, and the other jobs that may move, which are on several nodes.
    fixed_w
        Watts in each rack that no move changes, with every node awake, shape (R,).
    free
        Free GPUs of each node, and what is left of each resource of hosts, shape (1 + D, N). If no
        resource can bind, D is 0.
    open
        Whether jobs may come to each node, shape (N,).
    """

    round: Round
    saving: Saving
    groups: tuple[Group, ...]
    worth: tuple[float, ...]
    contents: dict[Content, list[int]]
    blocks: dict[int, dict[Kind, list[Mover]]]
    wide: tuple[Mover, ...]
    racked: bool
    fixed_w: Floats
    free: Floats
    open: Mask

    @cached_property
    def racks(self) -> dict[int, list[int]]:
        """The racks of the groups of each pool."""
        pairs = sorted({(group.pool, group.rack) for group in self.groups})
        return {p: [rack for pool, rack in pairs if pool == p] for p, _ in pairs}

    @property
    def movers(self) -> Iterator[Mover]:
        """All jobs that may move."""
        for kinds in self.blocks.values():
            for alike in kinds.values():
                yield from alike
        yield from self.wide


def lost_s(round: Round, state: JobState) -> float:
    """Return the seconds of progress that a running job loses if it moves now."""
    assert state.allocation is not None
    pause_s = state.pause_at(round.now_s, state.allocation.option.gpus, round.costs)
    return max(pause_s - state.rest_at(round.now_s), 0.0)


def worth_of(round: Round, saving: Saving) -> Floats:
    """Return the saving that each node without jobs counts for, shape (N,)."""
    topology = round.cluster.topology
    if saving != "watts":
        return np.ones(len(topology.node_gpus))
    return np.maximum(topology.awake_w - topology.sleep_w, 0.0)


def rack_worth(round: Round, saving: Saving) -> float:
    """Return what a rack without jobs counts for; all racks together for less than a node."""
    racks = round.cluster.topology.racks
    return 1.0 / (1 + len(racks)) if saving == "racks" and len(racks) > 1 else 0.0


def holdings(round: Round, saving: Saving = "nodes") -> Occupancy:
    """Return the occupancy of a round without arrays."""
    topology, book = round.cluster.topology, NodeBook(round)
    able = topology.node_gpus > 0
    able[list(round.asleep)] = False
    entry = able.copy()
    entry[[node for node, _ in round.leaving]] = False
    movers = _movers(round, book)
    wide = tuple(m for m in movers.values() if len(m.placement) > 1)
    fixed_w = node_w(topology, round.asleep, round.waking)
    blocks: defaultdict[int, dict[Kind, list[Mover]]] = defaultdict(dict)
    parts: defaultdict[int, list[KnapsackStage]] = defaultdict(list)
    fixed = topology.node_gpus.copy()
    for state in watched(round.running):
        held = state.allocation
        if held is None:
            continue
        mover, each_w = movers.get(state.job.id), extra_gpu_w(round, held.option)
        book.take(state, held)
        for node, gpus in held.placement:
            if mover is None:
                fixed_w[node] += gpus * each_w
                continue
            fixed[node] -= gpus
            if len(held.placement) == 1:
                blocks[node].setdefault(mover.kind, []).append(mover)
    fixed -= book.free
    binds = binding(round).any(axis=0)
    for j, mover in enumerate(wide):
        for node, gpus in mover.placement:
            parts[node].append(KnapsackStage(gpus, mover.kind[2], (0.0,), j))
    racked = bool(rack_caps(round.cluster)) or any(m.slice for m in wide)
    racked |= rack_worth(round, saving) > 0
    groups, worth = _groups(round, saving, able, entry, racked=racked)
    contents: defaultdict[Content, list[int]] = defaultdict(list)
    for c, group in enumerate(groups):
        for node in group.nodes:
            stages = parts.get(node, [])[:]
            for (_, gpus, each_w), alike in sorted(blocks.get(node, {}).items()):
                alike.sort(key=lambda m: m.lost_gpu_s)
                stages.append(KnapsackStage(gpus, each_w, tuple(m.lost_gpu_s for m in alike)))
            contents[Content(c, int(fixed[node]), tuple(stages))].append(node)
    by_rack = np.zeros(len(topology.racks))
    np.add.at(by_rack, topology.node_rack, fixed_w)
    return Occupancy(
        round=round,
        saving=saving,
        groups=groups,
        worth=worth,
        contents=dict(contents),
        blocks=dict(blocks),
        wide=wide,
        racked=racked,
        fixed_w=by_rack,
        free=np.vstack([book.free, book.left[binds]]),
        open=entry,
    )


def _movers(round: Round, book: NodeBook) -> dict[str, Mover]:
    topology, found = round.cluster.topology, dict[str, Mover]()
    most, capped = largest_nodes(topology), bool(rack_caps(round.cluster))
    binds = binding(round).any(axis=0)
    for state in watched(round.running):
        held = state.allocation
        if held is None or not may_change(round, state) or _bound(round, state):
            continue
        pool, gpus = held.option.pool, held.option.gpus
        whole, rest = divmod(gpus, most[pool])
        pieces = tuple((size, n) for size, n in ((most[pool], whole), (rest, int(rest > 0))) if n)
        found[state.job.id] = Mover(
            job=state.job.id,
            kind=(pool, gpus, extra_gpu_w(round, held.option) if capped else 0.0),
            placement=held.placement,
            lost_gpu_s=gpus * lost_s(round, state),
            pieces=pieces,
            slice=_slice(state.job, held.option.span, whole + (rest > 0)),
            spread=state.job.slices is not None and state.job.slices.spread,
            needs=tuple(map(tuple, book.needs(state).on(held.placement)[binds].T.tolist())),
        )
    return found


def _slice(job: Job, span: str, pieces: int) -> int:
    """Return the number of pieces that belong into one rack, 0 if they may be anywhere."""
    if span == "rack" and pieces > 1:
        return pieces
    return (job.slices.nodes or 0) if job.slices is not None else 0


def _bound(round: Round, state: JobState) -> bool:
    """Return whether a job stays: it is on a part, names nodes or others, or its slices differ."""
    job, racks = state.job, round.cluster.topology.node_rack
    slices = job.slices
    if job.nodes or job.features or job.neighbourhoods or job.part or job.share:
        return True
    if slices is None:
        return False
    at = regions(round.cluster, slices.within)
    alike = len(set(zip(at.tolist(), racks.tolist(), strict=True))) == len(set(racks.tolist()))
    return slices.nodes is None or slices.together is not None or not alike or bool(at.min() < 0)


def _groups(
    round: Round, saving: Saving, able: Mask, entry: Mask, *, racked: bool
) -> tuple[tuple[Group, ...], tuple[float, ...]]:
    """Return the groups of `able` nodes, alike in `entry`, and the worth of each without jobs."""
    topology = round.cluster.topology
    rack = topology.node_rack if racked else np.full(len(able), -1)
    numbers = (topology.node_pool, rack, topology.node_gpus, worth_of(round, saving), entry)
    columns = [column.tolist() for column in numbers]
    alike: defaultdict[tuple[int, int, int, float, bool], list[int]] = defaultdict(list)
    for node, (key, up) in enumerate(zip(zip(*columns, strict=True), able.tolist(), strict=True)):
        if up:
            alike[key].append(node)
    groups = [Group(*key[:3], c, tuple(nodes)) for c, (key, nodes) in enumerate(alike.items())]
    return tuple(groups), tuple(worth for *_, worth, _ in alike)
