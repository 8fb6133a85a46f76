"""How many nodes moves can empty, how surely, and how soon.

Nodes and jobs have the shapes of Alibaba's GPU cluster of 2023 (Weng et al., Beware of
Fragmentation, USENIX ATC 2023, the openb trace): its 1,213 nodes with GPUs in their proportions,
and its pods with whole GPUs, many of several (the list multigpu50; a pod that asks for a part of a
GPU has one). Jobs are put on nodes drawn at random until nothing fits, then drawn ones end until a
share of the GPUs is left in use. `greedy` empties the nodes with the fewest jobs onto the fullest
that hold these, one after the other: what can be done without a model. In rounds of the kind
`hosts` jobs need CPUs and memory, on average as many as their GPUs' share of a node, and in those
of the kind `blocks` they have 1 to 8 GPUs besides, many of them 3, 5 or 6. Both draws are ours.
"""

import time
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace

from lab.harness import Folder, limit, markdown, numbers, option, seeds, study
from ronda.instances.check.checker import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Costs, Job, JobState, Need, Option, used_nodes
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.tables.numbers import percent
from ronda.questions.consolidate.answer import consolidate
from ronda.questions.consolidate.holdings import holdings
from ronda.questions.consolidate.one_by_one import one_by_one

NODES = {
    ("G2", 8): 549,
    ("T4", 2): 387,
    ("P100", 2): 131,
    ("G3", 8): 39,
    ("V100M16", 4): 28,
    ("V100M32", 8): 21,
    ("V100M16", 1): 19,
    ("T4", 4): 17,
    ("V100M32", 4): 9,
    ("V100M16", 8): 8,
    ("P100", 1): 3,
    ("A10", 1): 2,
}
"""Nodes of the trace by GPU model and GPUs."""

JOBS = {1: 6989, 2: 222, 4: 206, 8: 556}
"""Pods of the list multigpu50 by whole GPUs."""

BLOCKS = {1: 20, 2: 20, 3: 15, 4: 15, 5: 15, 6: 10, 8: 5}
"""Jobs of the kind `blocks` by GPUs."""

HAS = {"cpu": 12.0, "memory_gib": 96.0}
"""What nodes have for each GPU."""

ASKED = {"cpu": (4.0, 8.0, 8.0, 12.0, 16.0, 24.0), "memory_gib": (32.0, 64.0, 96.0, 96.0, 160.0)}
"""What jobs need for each GPU, all equally likely."""

RESTART_S = 60.0


Held = tuple[int, int, tuple[float, ...]]
"""The node of a job, its GPUs, and its needs for each."""


def scattered(nodes: int, used: float, seed: int, kind: str = "openb") -> Round:
    """Return a round of some nodes whose jobs hold a share of the GPUs."""
    rng, cluster = np.random.default_rng([seed, nodes, 17]), _cluster(nodes, hosts=kind != "openb")
    drawn = BLOCKS if kind == "blocks" else JOBS
    sizes, share = np.array([*drawn]), np.array([*drawn.values()]) / sum(drawn.values())
    each = [1.0, *HAS.values()] if kind != "openb" else [1.0]
    free, held, missed = np.outer(each, cluster.topology.node_gpus), list[Held](), 0
    while free[0].any() and missed < 400:
        gpus = int(rng.choice(sizes, p=share))
        asked = tuple(float(rng.choice(ASKED[name])) for name in HAS) if len(each) > 1 else ()
        taken = gpus * np.array([1.0, *asked])
        room = np.flatnonzero((free >= taken[:, None]).all(axis=0))
        if len(room):
            held.append((int(rng.choice(room)), gpus, asked))
            free[:, held[-1][0]] -= taken
        missed = 0 if len(room) else missed + 1
    order = [held[k] for k in rng.permutation(len(held)).tolist()]
    in_use = np.array([gpus for _, gpus, _ in order]).cumsum()
    kept = sorted(order[: int(np.searchsorted(in_use, used * cluster.gpus, side="right"))])
    return Round(
        name=f"{kind}-{nodes}-{used:g}-{seed}",
        cluster=cluster,
        profiles={"rigid": _profile(cluster)},
        running=tuple(_running(cluster, k, *each) for k, each in enumerate(kept)),
        costs=Costs(restart_s=RESTART_S),
    )


def _cluster(nodes: int, *, hosts: bool) -> Cluster:
    """Return nodes in the proportions of the trace, by largest remainders."""
    share = {kind: count * nodes / sum(NODES.values()) for kind, count in NODES.items()}
    counts = {kind: int(part) for kind, part in share.items()}
    rest = sorted(share, key=lambda kind: counts[kind] - share[kind])
    for kind in rest[: nodes - sum(counts.values())]:
        counts[kind] += 1
    there = {kind: count for kind, count in counts.items() if count}
    return Cluster(
        gpu_types=tuple(
            GpuType(name=m, memory_gib=16.0) for m in dict.fromkeys(m for m, _ in there)
        ),
        node_groups=tuple(
            NodeGroup(
                name=f"{model}x{gpus}",
                count=count,
                gpus_per_node=gpus,
                gpu_type=model,
                has={name: each * gpus for name, each in HAS.items()} if hosts else {},
            )
            for (model, gpus), count in there.items()
        ),
    )


def _profile(cluster: Cluster) -> Profile:
    return Profile(name="rigid", throughput={t.name: Rigid() for t in cluster.gpu_types})


def _running(cluster: Cluster, k: int, node: int, gpus: int, asked: tuple[float, ...]) -> JobState:
    pool = int(cluster.topology.node_pool[node])
    option = Option(pool=pool, gpus=gpus, span="node")
    held = Allocation(option=option, placement=((node, gpus),))
    needs = {name: Need(per_gpu=each) for name, each in zip(HAS, asked, strict=False)}
    job = Job(id=f"j{k}", submit_s=0.0, profile="rigid", gpus=gpus, needs=needs)
    return JobState(job=job, since_s=0.0, started=True, allocation=held)


def measure(
    kind: str, nodes: int, used: float, moves: float, seed: int, limit_s: float
) -> dict[str, Any]:
    """Consolidate one round, with at most `moves` moves a node; 0: any number."""
    round_ = scattered(nodes, used, seed, kind)
    most = round(moves * nodes) if moves else None
    began_s, cpu_s = time.perf_counter(), time.process_time()
    found = consolidate(round_, moves=most, deadline=limit_s)
    wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    quick = one_by_one(holdings(round_), moves=most)
    before = round_.held
    after = before | {job: replace(before[job], placement=on) for job, on in quick.items()}
    in_use = len(used_nodes(before.values()))
    return {
        "jobs": len(round_.running),
        "in_use": in_use,
        "saved": found.plan.objective,
        "bound": found.plan.bound,
        "moved": len(found.moves),
        "greedy": in_use - len(used_nodes(after.values())),
        "greedy_moved": len(quick),
        "variables": found.plan.record.variables,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "violations": len(check(round_, found.plan)),
    }


def table_of(runs: pd.DataFrame) -> str:
    """Return the means by nodes, use and limit; Markdown."""
    rows = []
    for _, own in runs.groupby(["kind", "nodes", "used", "moves"], sort=False):
        nodes, used, moves = (float(own[name].iloc[0]) for name in ("nodes", "used", "moves"))
        rows.append(
            [
                own.kind.iloc[0],
                f"{nodes:,.0f}",
                f"{percent(used, '.0f')} %",
                f"{round(moves * nodes):,}" if moves else "any",
                *(f"{own[name].mean():,.1f}" for name in ("jobs", "in_use", "saved", "bound")),
                *(f"{own[name].mean():,.1f}" for name in ("moved", "greedy", "greedy_moved")),
                f"{own.variables.mean():,.0f}",
                f"{own.cpu_s.median():.2f}",
                f"{own.cpu_s.max():.2f}",
                f"{own.wall_s.max():.2f}",
                f"{own.violations.sum()}",
            ]
        )
    header = [
        "kind",
        "nodes",
        "GPUs used",
        "moves at most",
        "jobs",
        "nodes used",
        "emptied",
        "bound",
    ]
    header += [
        "moved",
        "greedy empties",
        "greedy moves",
        "variables",
        "s",
        "longest (s)",
        "wall (s)",
    ]
    return markdown([*header, "violations"], rows, words=0)


def experiment(
    folder: Folder,
    seeds: Sequence[int],
    kinds: str,
    nodes: tuple[float, ...],
    used: tuple[float, ...],
    moves: float,
    limit_s: float,
) -> None:
    """Consolidate the rounds, with as many moves as wanted and with few."""
    consolidate(scattered(4, 0.5, 0))  # imports, once
    cases: list[dict[str, Any]] = [
        {"kind": k, "nodes": int(n), "used": u, "moves": m, "seed": s, "limit_s": limit_s}
        for k, n, u, m, s in product(kinds.split(","), nodes, used, (0.0, moves), seeds)
    ]
    folder.write(table_of(folder.measure(cases, measure)))


command = study(
    "consolidation",
    __doc__,
    experiment,
    [
        seeds("1-3"),
        option("--kinds", default="openb", help="Kinds of rounds: openb, hosts, blocks."),
        numbers("--nodes", "25,100,500", "Sizes of the clusters."),
        numbers("--used", "0.5,0.7,0.9", "Shares of the GPUs that jobs hold."),
        option("--moves", type=float, default=0.25, help="The limit of moves, a node."),
        limit(60.0, "Seconds of a consolidation."),
    ],
)
