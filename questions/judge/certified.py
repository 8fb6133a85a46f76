"""Single decisions as rounds: what the log started, against the best plan for that moment."""

from collections import Counter
from itertools import chain

import numpy as np
from msgspec.structs import replace

from ronda.horizon.solve import solve
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Estimate, Job, JobState
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.questions.certificates.certify import certificate
from ronda.questions.judge.decisions import CostlyDecision
from ronda.questions.judge.queue import JudgedJobs
from ronda.questions.judge.space import Space

POLICY = "prices(elastic=false)"


def certified_regret(
    jobs: JudgedJobs, space: Space, told: CostlyDecision
) -> tuple[float, float] | None:
    """Return the least and the most that the worth of what was started then is below the best.

    Both are shares of the bound. The worth is that of the objective ``rank`` at time limits, for
    the jobs that waited and the devices that are proven to be free then, and certified. None if
    nothing is known of the sizes of jobs, or no job could start.
    """
    at_s = told.at_s
    free = _free(jobs, space, at_s)
    able = (jobs.ready_s <= at_s) & (jobs.start_s >= at_s) & (jobs.size <= sum(free.values()))
    here = np.flatnonzero(able)[:300].tolist()  # the jobs that came first
    if told.decisions > 1 or not here or not np.isfinite(jobs.limit_s[here]).all():
        return None
    rows = {node: row for row, node in enumerate(free)}
    groups = tuple(
        NodeGroup(name=f"{node}", count=1, gpus_per_node=free[node], gpu_type="device")
        for node in free
    )
    waiting = tuple(
        JobState(
            job=Job(
                id=jobs.ids[k],
                submit_s=0.0,
                profile="rigid",
                gpus=int(jobs.size[k]),
                weight=float(jobs.weight[k]),
                estimate=Estimate(work=float(jobs.limit_s[k])),
            ),
            since_s=0.0,
        )
        for k in here
    )
    round = Round(
        name="decision",
        now_s=0.0,
        cluster=Cluster(gpu_types=(GpuType(name="device", memory_gib=1.0),), node_groups=groups),
        profiles={"rigid": Profile(name="rigid", throughput={"device": Rigid()})},
        waiting=waiting,
    )
    plan = solve(round, POLICY)
    best = certificate(round, plan, POLICY)
    ways = best.jobs
    began = dict[str, Allocation]()
    for k, uses in enumerate(jobs.judged):
        if jobs.ids[k] in told.started and ways.get(jobs.ids[k]):
            if not {use.node for use in uses} <= free.keys():
                return None
            placement = tuple((rows[use.node], int(use.amounts[0])) for use in uses)
            began[jobs.ids[k]] = Allocation(option=ways[jobs.ids[k]][0].option, placement=placement)
    own = certificate(round, replace(plan, allocations=began), POLICY)
    bound = min(best.bound, own.bound)
    if bound <= 0:
        return None
    return max(0.0, best.worth - own.worth) / bound, max(0.0, bound - own.worth) / bound


def _free(jobs: JudgedJobs, space: Space, at_s: float) -> dict[int, int]:
    """Return the devices of nodes that are proven to be free at a moment, where there are any."""
    used = Counter[int]()
    for use in chain(*jobs.judged):
        if use.since_s < at_s < use.until_s:
            used[use.node] += int(use.amounts[0])
    free = dict[int, int]()
    for node, own in space.items():
        k = int(np.searchsorted(own.times_s, at_s, side="right")) - 1
        most = own.most[own.ends_s > at_s, 0].max(initial=0.0)
        if k >= 0 and (left := most - own.used[k, 0] - used[node]) >= 1:
            free[node] = int(left)
    return free
