"""Options and nodes chosen together, against options first and nodes afterwards.

Made rounds on nodes of 8 GPUs, four to a rack, four racks to a pod: half of the jobs rigid, of 2 to
24 GPUs and seldom a power of two, elastic ones slowed down by crossing racks, a part of the GPUs
held by jobs here and there, and more jobs than GPUs. With --hosts the racks are those of a real
cluster. `lost` is the share of the bound of options
alone that a plan misses because of nodes: jobs left out, and what moves lose by their restarts.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace

from lab.harness import Folder, limit, markdown, numbers, option, seeds, study
from ronda.formulations.objectives.by_name import values
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.build import build
from ronda.formulations.options.table import RACK, OptionTable, rows_of
from ronda.formulations.options.table import option as option_of
from ronda.instances import generate
from ronda.instances.base import Ints
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Cluster, NodeGroup, Rack
from ronda.instances.generate.applications import GPU, RIGID
from ronda.instances.job import Allocation, Estimate, JobState
from ronda.instances.plan import Plan
from ronda.instances.profile import Parametric, Profile
from ronda.instances.round import Round
from ronda.instances.traces.fabric import read_hosts
from ronda.solvers.registry import policy

NODE_GPUS, RACK_NODES, POD_RACKS = 8, 4, 4
SIZES = (2, 3, 4, 5, 6, 7, 10, 12, 16, 20, 24)
SHARES = (0.08, 0.18, 0.1, 0.18, 0.1, 0.08, 0.08, 0.08, 0.05, 0.05, 0.02)
DEMAND, LEAST_FREE, RUNNING, RIGID_SHARE = 2.0, 0.35, 0.6, 0.5
"""GPUs asked for, per GPU; share of GPUs that stay free; chance that a job tries to run; rigid."""

POLICIES = ("prices(gap=1e-3)", "milp(gap=1e-3)", "milp(gap=1e-3, placement=exact)")


def racked(gpus: int, hosts: str) -> Cluster:
    """Return equal nodes in racks and pods: those of a file of hosts, or made ones."""
    if hosts:
        real = read_hosts(hosts)
        before = np.cumsum([0, *(group.count * NODE_GPUS for group in real.node_groups)])
        last = int(np.searchsorted(before, gpus))
        return replace(real, node_groups=real.node_groups[:last])
    nodes = gpus // NODE_GPUS
    racks = -(-nodes // RACK_NODES)
    pods = tuple(Rack(name=f"pod{p}") for p in range(-(-racks // POD_RACKS)))
    groups = (
        NodeGroup(
            name=f"g{k}",
            count=min(RACK_NODES, nodes - k * RACK_NODES),
            gpus_per_node=NODE_GPUS,
            gpu_type=GPU.name,
            rack=f"r{k}",
        )
        for k in range(racks)
    )
    within = (Rack(name=f"r{k}", parent=f"pod{k // POD_RACKS}") for k in range(racks))
    return Cluster(gpu_types=(GPU,), racks=(*pods, *within), node_groups=tuple(groups))


def made(gpus: int, seed: int, hosts: str = "") -> Round:
    """Return a round of some GPUs."""
    rng, cluster = np.random.default_rng([seed, gpus, 7]), racked(gpus, hosts)
    asked: list[int] = []
    while sum(asked) < DEMAND * cluster.gpus:
        asked.append(int(rng.choice(SIZES, p=SHARES)))
    base = generate.round(len(asked), gpus, "tight", seed)
    order = sorted(base.jobs, key=lambda state: state.job.id)
    bare = replace(
        base,
        cluster=cluster,
        profiles={name: _across_racks(p) for name, p in base.profiles.items()}
        | {RIGID.name: RIGID},
        running=(),
        waiting=tuple(_waiting(rng, s, n) for s, n in zip(order, asked, strict=True)),
        power_cap_w=None,
        energy_j=None,
        sustained_w=None,
    )
    return _started(rng, bare)


def _across_racks(profile: Profile) -> Profile:
    model = profile.throughput[GPU.name]
    assert isinstance(model, Parametric)
    slower = replace(model, alpha_x_s=4.0 * model.alpha_n_s, beta_x_s=model.beta_n_s)
    return replace(profile, throughput={GPU.name: slower})


def _waiting(rng: np.random.Generator, state: JobState, gpus: int) -> JobState:
    """Return a job that waits, and asks for some GPUs."""
    if rng.random() < RIGID_SHARE:
        work = Estimate(work=float(rng.lognormal(math.log(3600.0), 1.4)))
        rigid = {"profile": RIGID.name, "min_gpus": None, "max_gpus": None, "estimate": work}
        return replace(
            state, job=replace(state.job, gpus=gpus, **rigid), allocation=None, noise=None
        )
    job = replace(state.job, gpus=gpus, min_gpus=max(1, gpus // 2), max_gpus=2 * gpus)
    return replace(state, job=job, allocation=None)


def _started(rng: np.random.Generator, round_: Round) -> Round:
    """Start jobs on nodes drawn at random, until few GPUs are free."""
    table, running = build(round_), dict[str, JobState]()
    free = round_.cluster.topology.node_gpus.copy()
    least, now_s = LEAST_FREE * free.sum(), round_.now_s
    for j in rng.permutation(len(table.jobs)).tolist():
        own = np.arange(table.start[j], table.start[j + 1])
        own = own[(table.gpus[own] <= table.jobs[j].job.gpus) & (table.span[own] != RACK)]
        if not len(own) or rng.random() > RUNNING or free.sum() <= least:
            continue
        k = int(rng.choice(own))
        placement = _drawn(rng, free, int(table.gpus[k]))
        if not placement:
            continue
        for node, gpus in placement:
            free[node] -= gpus
        state = table.jobs[j]
        running[state.job.id] = replace(
            state,
            since_s=now_s - 300.0,
            held_s=now_s - 300.0,
            started=True,
            done=0.0,
            allocation=Allocation(option=option_of(table, k), placement=placement),
        )
    waiting = tuple(s for s in round_.waiting if s.job.id not in running)
    return replace(round_, running=tuple(running[job] for job in sorted(running)), waiting=waiting)


def _drawn(rng: np.random.Generator, free: Ints, gpus: int) -> tuple[tuple[int, int], ...]:
    """Return free nodes, and a block of the rest, drawn at random; () without room."""
    whole, rest = divmod(gpus, NODE_GPUS)
    nodes = rng.permutation(np.flatnonzero(free == NODE_GPUS))[:whole].tolist()
    block = [n for n in np.flatnonzero(free >= rest).tolist() if n not in nodes]
    if len(nodes) < whole or (rest and not block):
        return ()
    last = [(int(rng.choice(block)), rest)] if rest else []
    return tuple(sorted([*((n, NODE_GPUS) for n in nodes), *last]))


def measure(gpus: int, seed: int, spec: str, limit_s: float, hosts: str) -> dict[str, Any]:
    """Decide one round by one policy."""
    round_ = made(gpus, seed, hosts)
    by = policy(spec)
    by.plan(round_, deadline=Deadline(limit_s), seed=seed)  # imports and options, once
    deadline = Deadline(limit_s)
    plan = by.plan(round_, deadline=deadline, seed=seed)
    total_s = deadline.elapsed()
    alone = policy("prices(gap=1e-6)").plan(round_, deadline=Deadline(), seed=seed)
    table = build(round_)
    moves, got = _moves(round_, table, plan)
    bound = alone.bound or 0.0
    return {
        "jobs": len(round_.jobs),
        "total_s": total_s,
        "gap": plan.gap,
        "lost": (bound - got) / bound,
        "left_out": plan.details.placement_loss / bound,
        "moves": moves / bound,
        "moved": len(plan.details.moved),
        "moved_gpus": plan.details.moved_gpus,
        "cuts": plan.details.node_cuts,
        "violations": len(check(round_, plan)),
    }


def _moves(round_: Round, table: OptionTable, plan: Plan) -> tuple[float, float]:
    """Return what a plan's moves lose, and what it is worth after that."""
    worth, rows = values(round_, table), rows_of(table, plan)
    rows = rows[rows >= 0]
    lost = loss_of_moves(round_, table, worth, rows, plan.details.moved)
    return lost, float(worth[rows].sum()) - lost


def table_of(runs: pd.DataFrame) -> str:
    """Return the means by size and policy; Markdown."""
    rows = []
    for (gpus, spec), own in runs.groupby(["gpus", "spec"], sort=False):
        shares = (f"{100 * own[name].mean():.2f}" for name in ("left_out", "moves", "lost"))
        rows.append(
            [
                f"{gpus:,}",
                f"{own.jobs.mean():.0f}",
                f"`{spec}`",
                *shares,
                f"{100 * own.lost.max():.2f}",
                f"{own.moved_gpus.mean():.1f}",
                f"{own.total_s.median():.2f}",
                f"{own.total_s.max():.2f}",
                f"{own.gap.max():.0e}",
                f"{own.violations.sum()}",
            ]
        )
    header = ["GPUs", "jobs", "policy", "left out (%)", "moves (%)", "lost (%)", "worst (%)"]
    header += ["GPUs moved", "s", "longest (s)", "largest gap", "violations"]
    return markdown(header, rows, words=3)


def compare(
    folder: Folder,
    seeds: Sequence[int],
    gpus: tuple[float, ...],
    hosts: str,
    limit_s: float,
) -> None:
    """Run the policies on made rounds."""
    cases: list[dict[str, Any]] = [
        {"gpus": int(n), "seed": s, "spec": spec, "limit_s": limit_s, "hosts": hosts}
        for n, spec, s in product(gpus, POLICIES, seeds)
    ]
    folder.write(table_of(folder.measure(cases, measure)))


command = study(
    "placement",
    __doc__,
    compare,
    [
        seeds("0-9"),
        numbers("--gpus", "64,128,256,512", "Sizes of the made rounds."),
        option("--hosts", default="", help="CSV file of hosts and switches: take their racks."),
        limit(60.0, "Seconds of a decision."),
    ],
)
