"""A plan that was made for an earlier round, as far as it can still be carried out."""

import msgspec

from ronda.formulations.fusion.sharing import narrowed
from ronda.instances.job import Allocation, used_nodes
from ronda.instances.plan import Plan
from ronda.solvers.horizon.state import ClusterState


def still(state: ClusterState, plan: Plan) -> Plan:
    """Return a plan for an earlier round without what can no longer be done.

    Jobs that have ended are left out. One that finds too few GPUs in service where it is to go
    stays where it runs if nobody else has come there, or waits.
    """
    left: list[int] = state.cluster.topology.node_gpus.tolist()

    taken: set[object] = set()

    def take(allocation: Allocation) -> bool:
        array = allocation.array and (allocation.array, allocation.placement)
        if array in taken:
            return True
        if any(left[node] < gpus for node, gpus in allocation.placement):
            return False
        if array is not None:
            taken.add(array)
        for node, gpus in allocation.placement:
            left[node] -= gpus
        return True

    held, kept = state.held(), dict[str, Allocation]()
    wanted = {i: a for i, a in plan.allocations.items() if i in state.lives}
    for job_id, allocation in wanted.items():
        now = held.get(job_id)
        if now is not None and now.goes_on(allocation) and take(now):
            kept[job_id] = now
    for job_id, allocation in wanted.items():
        if job_id not in kept:
            for choice in (allocation, held.get(job_id)):
                if choice is not None and take(choice):
                    kept[job_id] = choice
                    break
    jobs = {i: state.lives[i].job for i in kept}
    kept |= narrowed(kept, jobs, state.instance.profiles, state.instance.cluster)
    used = used_nodes(kept.values())
    asleep = plan.asleep
    if asleep is not None:
        asleep = tuple(n for n in asleep if n not in state.nodes.off and n not in used)
    gone = tuple(i for i in plan.discarded if i in state.lives)
    return msgspec.structs.replace(plan, allocations=kept, asleep=asleep, discarded=gone)
