"""Speed of decisions about jobs that must fit on nodes: hosts, sizes that do not divide, gangs."""

from typing import Any

import numpy as np
from msgspec.structs import replace

from lab.speed.cases import case, timed
from ronda.instances import generate
from ronda.instances.check.plan import check_plan
from ronda.instances.clock import Deadline
from ronda.instances.cluster import NodeGroup
from ronda.instances.job import Job, Need
from ronda.instances.round import Round
from ronda.solvers.registry import policy as policy_of

HOSTS = ((96.0, 512.0), (64.0, 1024.0), (128.0, 768.0))
"""CPUs and GiB of memory of the nodes of each kind, all of 8 GPUs."""

PER_GPU = ((2, 4, 8, 12, 16, 24), (8, 24, 48, 64, 96, 160))
"""CPUs and GiB that jobs need for each GPU."""

AWKWARD = ((3, 5, 6), (0.3, 0.4, 0.3))
GANGS = ((12, 20, 27, 44), (0.4, 0.3, 0.2, 0.1))
"""Sizes that do not divide a node, those of jobs over several nodes, and how often they are."""


def on_nodes(
    jobs: int, nodes: int, kind: str = "hosts", seed: int = 0, *, running: bool = False
) -> Round:
    """Return a round in which nodes matter, with nodes of 8 GPUs.

    Parameters
    ----------
    jobs, nodes, seed
        Numbers of jobs and nodes, and the seed of all that is drawn.
    kind
        ``hosts``: elastic jobs need CPUs and memory of three kinds of nodes. ``awkward``: rigid
        jobs of 3, 5 and 6 GPUs. ``gangs``: both of these, and jobs over several nodes.
    running
        Whether some of the jobs run, as they are generated.
    """
    made = generate.round(jobs, 8 * nodes, "loose", seed)
    rng = np.random.default_rng([seed, 6])
    states = made.jobs
    if not running:
        states = tuple(replace(state, allocation=None) for state in states)
    groups = made.cluster.node_groups
    if kind != "awkward":
        counts = np.diff(np.linspace(0, nodes, len(HOSTS) + 1).astype(int)).tolist()
        groups = tuple(
            _host(groups[0], f"kind{k}", count, *has)
            for k, (count, has) in enumerate(zip(counts, HOSTS, strict=True))
            if count
        )

    def shaped(job: Job) -> Job:
        if kind != "awkward":
            cpu, memory = (float(rng.choice(amounts)) for amounts in PER_GPU)
            job = replace(job, needs={"cpu": Need(per_gpu=cpu), "memory": Need(per_gpu=memory)})
        if kind == "hosts":
            return job
        sizes, shares = GANGS if kind == "gangs" and rng.random() < 0.2 else AWKWARD
        return replace(job, gpus=int(rng.choice(sizes, p=shares)), min_gpus=None, max_gpus=None)

    states = tuple(
        state if state.allocation is not None else replace(state, job=shaped(state.job))
        for state in states
    )
    return replace(
        made,
        name=f"on-nodes-{kind}-{jobs}-{nodes}-{seed}",
        cluster=replace(made.cluster, node_groups=groups),
        running=tuple(state for state in states if state.allocation is not None),
        waiting=tuple(state for state in states if state.allocation is None),
        power_cap_w=None,
        energy_j=None,
        sustained_w=None,
    )


def _host(group: NodeGroup, name: str, count: int, cpu: float, memory: float) -> NodeGroup:
    return replace(group, name=name, count=count, has={"cpu": cpu, "memory": memory})


@case("4000")
def measure_jobs_on_nodes(
    jobs: int,
    nodes: int = 1000,
    kind: str = "hosts",
    seed: int = 0,
    policy: str = "prices",
    limit_s: float | None = None,
) -> dict[str, Any]:
    """Time a decision about a round in which nodes matter, and check its plan.

    lost is the share of the bound that the options lose which find no room on nodes.
    """
    round_ = on_nodes(jobs, nodes, kind, seed)
    deadline = Deadline(limit_s)
    plan, total_s, cpu_s = timed(lambda: policy_of(policy).plan(round_, deadline=deadline, seed=0))
    faults = check_plan(round_, plan)
    return {
        "gpus": round_.cluster.gpus,
        "total_s": total_s,
        "cpu_s": cpu_s,
        "gap": plan.gap,
        "lost": plan.details.placement_loss / (plan.bound or 1.0),
        "unplaced": len(plan.details.unplaced),
        "placed": len(plan.allocations),
        "violations": len(faults),
        "words": plan.record.message,
    }
