"""Tiny rounds whose nodes hold jobs here and there, and the best moves by trying them all.

Written apart from the model: jobs get nodes one by one, and the checker says what is allowed.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ronda.instances.check.checker import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Partition, Rack
from ronda.instances.job import Allocation, Costs, Job, JobState, Option
from ronda.instances.plan import Plan
from ronda.instances.profile import PowerCurve, Profile, Rigid, rigid_profile
from ronda.instances.round import Round

Placement = tuple[tuple[int, int], ...]

NOW_S = 100.0
JOB_W = 70.0
"""Watts that a job adds on each GPU."""


def scattered(seed: int) -> Round:
    """Return a random round of up to 6 jobs on 3 to 5 nodes, in one or two racks and pools.

    Jobs run in one piece or in several, of a rack or not; some may not move, some are in a pause,
    some have costs of their own. Sometimes a node without jobs sleeps, GPUs are out of service, or
    the power of a rack, or of all, is capped.
    """
    rng = np.random.default_rng([seed, 13])
    cluster = _cluster(rng)
    free, states = cluster.topology.node_gpus.tolist(), list[JobState]()
    for k in range(int(rng.integers(3, 7))):
        if held := _held(rng, cluster, free):
            states.append(_running(rng, cluster, f"j{k}", held))
    empty = [n for n, gpus in enumerate(free) if gpus == cluster.topology.node_gpus[n] > 0]
    round_ = Round(
        name=f"scattered-{seed}",
        now_s=NOW_S,
        cluster=cluster,
        profiles={"rigid": _profile()},
        running=tuple(states),
        costs=Costs(restart_s=float(rng.choice([0.0, 10.0, 60.0]))),
        asleep=tuple(empty[:1]) if rng.random() < 0.3 else (),
    )
    return _capped(rng, round_)


def crowd(sizes, held, pinned=(), **fields):
    """Return a round of nodes of these sizes; jobs are pairs (node, GPUs)."""
    states = tuple(
        JobState(
            job=Job(
                id=f"j{k}", submit_s=0.0, profile="rigid", gpus=gpus, preemptible=k not in pinned
            ),
            since_s=0.0,
            started=True,
            allocation=Allocation(
                option=Option(pool=0, gpus=gpus, span="node"), placement=((node, gpus),)
            ),
        )
        for k, (node, gpus) in enumerate(held)
    )
    groups = tuple(
        NodeGroup(name=f"n{n}", count=1, gpus_per_node=size, gpu_type="v", host_idle_w=100.0)
        for n, size in enumerate(sizes)
    )
    cluster = Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16.0, idle_w=5.0),), node_groups=groups
    )
    profiles = {"rigid": rigid_profile("v")}
    return Round(cluster=cluster, profiles=profiles, running=states, **fields)


class Best(NamedTuple):
    """The best moves: what they save, how many they are, and GPU-seconds that they lose."""

    saved: float
    moves: int
    lost_gpu_s: float


def best_moves(
    round_: Round, save: str, moves: int | None = None, lost_gpu_s: float | None = None
) -> Best:
    """Return the most that moves save; of such moves the fewest, and of these the cheapest."""
    topology = round_.cluster.topology
    worth = np.ones(len(topology.node_gpus))
    if save == "watts":
        worth = np.maximum(topology.awake_w - topology.sleep_w, 0.0)
    before = _used(round_.held.values())
    best = Best(0.0, 0, 0.0)
    for placed, count, lost in _every(round_):
        if count > (count if moves is None else moves):
            continue
        if lost > (lost if lost_gpu_s is None else lost_gpu_s):
            continue
        after = _used(placed.values())
        saved = float(worth[sorted(before)].sum() - worth[sorted(after)].sum())
        rank = (round(saved - best.saved, 6), best.moves - count, round(best.lost_gpu_s - lost, 6))
        if rank <= (0.0, 0, 0.0):
            continue
        idle = sorted(set(np.flatnonzero(worth > 0).tolist()) - after | set(round_.asleep))
        plan = Plan(allocations=placed, asleep=tuple(idle) if save == "watts" else None)
        if check(round_, plan) == []:
            best = Best(saved, count, lost)
    return best


def _used(allocations) -> set[int]:
    return {node for held in allocations for node, _ in held.placement}


def _every(round_: Round) -> Iterator[tuple[dict[str, Allocation], int, float]]:
    """Yield every way to place what runs: the allocations, how many move, what they lose."""
    free = round_.cluster.topology.node_gpus.tolist()
    for node in round_.asleep:
        free[node] = 0

    def placed(
        states: tuple[JobState, ...],
    ) -> Iterator[tuple[dict[str, Allocation], int, float]]:
        if not states:
            yield {}, 0, 0.0
            return
        state, held = states[0], states[0].allocation
        for placement in (held.placement, *_elsewhere(round_, state)):
            if any(free[node] < gpus for node, gpus in placement):
                continue
            for node, gpus in placement:
                free[node] -= gpus
            stays = placement == held.placement
            lost = 0.0 if stays else held.option.gpus * _pause_s(round_, state)
            given = held if stays else replace(held, placement=placement)
            for others, count, more in placed(states[1:]):
                yield {state.job.id: given, **others}, count + (not stays), more + lost
            for node, gpus in placement:
                free[node] += gpus

    yield from placed(round_.running)


def _pause_s(round_: Round, state: JobState) -> float:
    """Return the restart; what is left of a pause is owed besides, and would pass anyway."""
    return (state.job.costs or round_.costs).restart_s


def _elsewhere(round_: Round, state: JobState) -> Iterator[Placement]:
    """Yield the other nodes that a job may take: whole ones, the largest, and one block."""
    if not state.job.preemptible:
        return
    option, topology = state.allocation.option, round_.cluster.topology
    size = topology.node_gpus.tolist()
    nodes = [n for n in np.flatnonzero(topology.node_pool == option.pool).tolist() if size[n]]
    largest = max(size[n] for n in nodes)
    whole, rest = divmod(option.gpus, largest)
    for filled in combinations([n for n in nodes if size[n] == largest], whole):
        for block in [n for n in nodes if n not in filled] if rest else [-1]:
            pieces = [*((n, largest) for n in filled), *([(block, rest)] if rest else [])]
            placement = tuple(sorted(pieces))
            if placement != state.allocation.placement:
                yield placement


def _cluster(rng: np.random.Generator) -> Cluster:
    """Return two or three groups of nodes."""
    racks, apart = int(rng.integers(1, 3)), bool(rng.random() < 0.25)
    size = int(rng.choice([2, 3, 4, 6]))
    groups = [
        NodeGroup(
            name=f"g{k}",
            count=int(rng.integers(1, 3)),
            gpus_per_node=size if rng.random() < 0.7 else int(rng.choice([2, 4])),
            gpu_type="G",
            rack=f"r{k % racks}",
            partition="b" if apart and k == 2 else "default",
            host_idle_w=float(rng.choice([50, 100, 300])),
            sleep_w=float(rng.choice([10, 80])),
        )
        for k in range(3)
    ]
    return Cluster(
        gpu_types=(GpuType(name="G", memory_gib=16.0, idle_w=30.0),),
        racks=tuple(Rack(name=f"r{k}") for k in range(racks)),
        partitions=(Partition(name="b"),) if apart else (),
        node_groups=tuple(groups),
        out=((0, 1),) if rng.random() < 0.15 else (),
    )


def _held(rng: np.random.Generator, cluster: Cluster, free: list[int]) -> Allocation | None:
    """Return what a job runs on, taken from `free`: a node, or pieces of several; None: no room."""
    topology = cluster.topology
    pool = int(rng.integers(len(topology.pools)))
    nodes = [n for n in np.flatnonzero(topology.node_pool == pool).tolist() if free[n]]
    if not nodes:
        return None
    first = max(nodes, key=free.__getitem__) if rng.random() < 0.5 else int(rng.choice(nodes))
    taken = [(first, int(rng.integers(1, max(2, free[first]))))]
    others = [n for n in nodes if n != first]
    if others and rng.random() < 0.25:
        second = int(rng.choice(others))
        taken.append((second, int(rng.integers(1, free[second] + 1))))
    for node, gpus in taken:
        free[node] -= gpus
    gpus = sum(g for _, g in taken)
    span = "node" if len(taken) == 1 else "cluster"
    racks = {int(topology.node_rack[n]) for n, _ in taken}
    if span == "cluster" and len(racks) == 1 and rng.random() < 0.5:
        span = "rack"
    option = Option(pool=pool, gpus=gpus, span=span, power_w=(30.0 + JOB_W) * gpus)
    return Allocation(option=option, placement=tuple(sorted(taken)))


def _running(rng: np.random.Generator, cluster: Cluster, name: str, held: Allocation) -> JobState:
    job = Job(
        id=name,
        submit_s=0.0,
        profile="rigid",
        gpus=held.option.gpus,
        partition=cluster.topology.pools[held.option.pool].partition,
        preemptible=bool(rng.random() < 0.85),
        costs=Costs(restart_s=float(rng.integers(5, 90))) if rng.random() < 0.3 else None,
    )
    since_s = NOW_S + float(rng.choice([-50.0, 7.0]))
    return JobState(job=job, since_s=since_s, started=True, allocation=held)


def _profile() -> Profile:
    power = {"G": PowerCurve(a_w=60.0, b_w=40.0)}
    return Profile(name="rigid", throughput={"G": Rigid()}, power=power)


def _capped(rng: np.random.Generator, round_: Round) -> Round:
    """Return the round with, sometimes, a cap that what runs keeps."""
    cluster, topology = round_.cluster, round_.cluster.topology
    drawn = topology.awake_w.copy()
    drawn[list(round_.asleep)] = topology.sleep_w[list(round_.asleep)]
    for held in round_.held.values():
        for node, gpus in held.placement:
            drawn[node] += JOB_W * gpus
    kind, slack = rng.random(), float(rng.choice([0.0, 100.0, 300.0]))
    if kind < 0.15:
        return replace(round_, power_cap_w=float(drawn.sum()) + slack)
    if kind < 0.5:
        there = np.bincount(topology.node_rack, drawn, minlength=len(topology.racks))
        capped = [
            replace(rack, power_cap_w=float(there[topology.racks.index(rack.name)]) + slack)
            for rack in cluster.racks
        ]
        return replace(round_, cluster=replace(cluster, racks=tuple(capped)))
    return round_
