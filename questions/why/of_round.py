"""A round as a snapshot, so that questions of a cluster can be asked of it."""

from collections.abc import Mapping
from math import inf

from ronda.formulations.options.application import Requested
from ronda.formulations.watts import extra_w, node_w
from ronda.instances.cluster import Cluster, NodeGroup, Rack
from ronda.instances.job import Allocation, Job, JobState, Need, Option
from ronda.instances.round import Round
from ronda.instances.site import GPUS, LimitGroup
from ronda.instances.snapshots.snapshot import Noted, SeenJob, SeenNode, Snapshot
from ronda.questions.why.words import POWER_CAP, WATTS

SAME = (
    *("id", "name", "user", "tenant", "priority", "submit_s", "eligible_s", "exclusive", "after"),
    *("after_all", "one_node", "gpu_types", "features", "job_array", "slices", "part", "share"),
    "preemptible",
)
"""The fields of a job that a snapshot's job has in the same way."""


def snapshot_of(round: Round) -> Snapshot:
    """Return a round as a snapshot.

    A node has the name of its group, with its number if the group has several. Without stated
    pieces, the GPUs of a job may be on any nodes; a job that needs something of each node has one
    piece, or one for each node that it fills. A job without a time limit ends when it is believed
    to. Energy budgets are left out, and counted in `noted`.
    """
    cluster, noted = round.cluster, Noted()
    names = node_names(cluster)
    options = Requested(round)
    site = round.site
    rank = {each.name: float(each.rank) for each in site.classes}
    groups, capped = site.groups, round.power_cap_w is not None
    if round.power_cap_w is not None:  # what jobs may add to a cluster that idles
        spare_w = round.power_cap_w - float(node_w(cluster.topology, round.asleep).sum())
        groups += (LimitGroup(name=POWER_CAP, most={WATTS: max(0.0, spare_w)}),)
    if round.energy_j is not None:
        noted.add("energy budget that is left out", f"{round.energy_j:g} J")
    jobs = []
    for state in round.jobs:
        job, held, option = state.job, state.allocation, next(iter(options.options(state)), None)
        if held is not None:
            option = held.option
        count, per = _pieces(job, cluster)
        draws = max(0.0, extra_w(round, option)) if capped and option is not None else 0.0
        jobs.append(
            SeenJob(
                **{field: getattr(job, field) for field in SAME},
                partitions=(job.partition,),
                rank=state.rank if state.rank is not None else rank.get(job.priority or ""),
                start_s=None if held is None else state.held_s,
                limit_s=_limit_s(round, state, option),
                ends_s=None if held is None else _ends_s(round, state, held),
                count=count,
                per=per | ({WATTS: draws / count} if draws else {}),
                own_nodes=job.pieces is not None and job.pieces.own_nodes,
                nodes=tuple(names[node] for node in job.nodes),
                blocked=state.blocked,
                array_most=round.site.job_arrays.get(job.job_array or ""),
                licences={k: float(v) for k, v in job.licences.items()},
                restarts=state.restarts,
                on={names[node]: gpus for node, gpus in held.placement} if held else {},
                held={} if held is None else _held(names, job, held, draws),
            )
        )
    return Snapshot(
        source=round.name,
        system="ronda",
        now_s=round.now_s,
        nodes=tuple(_nodes(round, names)),
        jobs=tuple(jobs),
        tenants=site.tenants,
        groups=groups,
        classes=site.classes,
        licences={k: float(v) for k, v in cluster.licences.items()},
        licences_taken={k: float(v) for k, v in cluster.licences_taken.items()},
        noted=noted,
    )


def node_names(cluster: Cluster) -> list[str]:
    """Return a name for each node: that of its group, with a number if the group has several."""
    return [
        group.name if group.count == 1 else f"{group.name}-{k}"
        for group in cluster.node_groups
        for k in range(group.count)
    ]


def _nodes(round: Round, names: list[str]) -> list[SeenNode]:
    """Return the nodes with what outside work leaves of them."""
    cluster, racks = round.cluster, {rack.name: rack for rack in round.cluster.racks}
    leaves, back = dict(round.leaving), dict(round.returning)
    taken: dict[int, dict[str, float]] = {}
    for node, resource, amount in cluster.taken:
        own = taken.setdefault(node, {})
        own[resource] = own.get(resource, 0.0) + amount
    memory = {each.name: each.memory_gib for each in cluster.gpu_types}
    hosts = {resource for group in cluster.node_groups for resource in group.has}
    free = dict.fromkeys({r for state in round.jobs for r in state.job.needs} - hosts, inf)
    free |= {} if round.power_cap_w is None else {WATTS: inf}
    found, groups = [], [g for g in cluster.node_groups for _ in range(g.count)]
    for n, (name, group) in enumerate(zip(names, groups, strict=True)):
        gpus = int(cluster.topology.node_gpus[n])
        has = {r: max(0.0, a - taken.get(n, {}).get(r, 0.0)) for r, a in group.has.items()}
        found.append(
            SeenNode(
                name=name,
                has={GPUS: float(gpus), **has, **free},
                gpu_type=group.gpu_type,
                gpu_memory_gib=memory[group.gpu_type],
                partitions=(group.partition,),
                features=group.features,
                racks=_racks(group, racks),
                out=None if gpus else "out of service",
                leaves_s=leaves.get(n) if gpus else None,
                back_s=back.get(n),
            )
        )
    return found


def _racks(group: NodeGroup, racks: Mapping[str, Rack]) -> tuple[tuple[str, str], ...]:
    found, name = list[tuple[str, str]](), group.rack
    while name is not None:
        rack = racks[name]
        found.append((rack.level, name))
        name = rack.parent
    return tuple(reversed(found))


def _pieces(job: Job, cluster: Cluster) -> tuple[int, dict[str, float]]:
    """Return the number of pieces of a job, and what each of them holds."""
    if job.pieces is not None:
        return job.pieces.count, _per(job, job.gpus // job.pieces.count)
    largest = max(
        (g.gpus_per_node for g in cluster.node_groups if g.partition == job.partition), default=1
    )
    whole = job.slices is not None or job.exclusive
    whole |= any(need.per_node or need.flat for need in job.needs.values())
    if job.one_node or (whole and job.gpus <= largest):
        return 1, _per(job, job.gpus)
    if whole:
        return -(-job.gpus // largest), _per(job, largest)
    return job.gpus, _per(job, 1)


def _per(job: Job, gpus: int) -> dict[str, float]:
    """Return what a piece of so many GPUs holds on its node."""
    each = {r: need.per_gpu * gpus + need.per_node + need.flat for r, need in job.needs.items()}
    return {GPUS: gpus if job.share is None else job.share, **each}


def _limit_s(round: Round, state: JobState, option: Option | None) -> float | None:
    """Return a job's time limit in all, or the seconds that it is believed to take."""
    if state.job.limit_s is not None:
        return state.job.limit_s
    work = state.mostly_left_at(round.now_s)
    if work is None or option is None:
        return None
    return state.ran_at(round.now_s) + work / option.rate


def _ends_s(round: Round, state: JobState, held: Allocation) -> float | None:
    """Return when a running job is believed to end, at its time limit at the latest."""
    work = state.remaining_at(round.now_s)
    if state.job.limit_s is not None or work is None:
        latest = round.now_s + state.may_hold_s(round.now_s)
        return None if work is None and latest == inf else latest
    return round.now_s + state.rest_at(round.now_s) + work / held.option.rate


def _held(
    names: list[str], job: Job, held: Allocation, watts: float
) -> dict[str, dict[str, float]]:
    """Return what a running job holds on each of its nodes; one of an array, its even share."""
    placement, width = held.placement, held.option.width
    last = min(range(len(placement)), key=lambda k: placement[k][1], default=0)

    def amount(need: Need, k: int, gpus: int) -> float:
        return need.per_gpu * gpus + need.per_node + (need.flat if k == last else 0.0)

    return {
        names[node]: {
            GPUS: (gpus if held.option.share is None else held.option.share) / width,
            **{r: amount(need, k, gpus) / width for r, need in job.needs.items()},
            **({WATTS: watts * gpus / held.option.gpus} if watts else {}),
        }
        for k, (node, gpus) in enumerate(placement)
    }
