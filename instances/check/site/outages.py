"""The check of announced outages: nobody comes to a node that leaves before the job ends."""

from math import inf

from ronda.instances.check.site.given import JobInPlan
from ronda.instances.job import Allocation, JobState, same_nodes
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.violation import SECOND, Violation


def leaving_violations(round: Round, plan: Plan, given: list[JobInPlan]) -> list[Violation]:
    """Return the jobs that come to a node that leaves too early for them.

    A job may stay on the nodes that it has, and on one of which it has all that it can get there.
    """
    leaves, found = dict(round.leaving), list[Violation]()
    sizes = round.cluster.topology.node_gpus.tolist() if leaves else []
    for state, allocation, kept in given if leaves else ():
        now = None if state.allocation is None else state.allocation.placement
        if allocation is None or kept or (now and same_nodes(now, allocation.placement)):
            continue
        held, gpus = dict(now or ()), allocation.option.gpus
        there = [n for n, _ in allocation.placement if n in leaves]
        new = [n for n in there if held.get(n, 0) < min(gpus, sizes[n])]
        end_s = _end_s(round, state, allocation) if new else 0.0
        for node in new:
            if end_s > leaves[node] + SECOND:
                until = "at an unknown time" if end_s == inf else f"at {end_s:.9g} s"
                message = f"comes to node {node}, which leaves at {leaves[node]:.9g} s, and ends "
                found.append(Violation("leaving", f"job {state.job.id}", message + until))
    return found


def _end_s(round: Round, state: JobState, given: Allocation) -> float:
    """Return the time by which a job with a new allocation is expected to have ended."""
    option, work = given.option, state.mostly_left_at(round.now_s)
    resting = {*round.asleep, *round.waking}
    nodes = [node for node, _ in given.placement if node in resting]
    wake_s = max((float(round.cluster.topology.wake_s[node]) for node in nodes), default=0.0)
    pause_s = wake_s + state.pause_at(round.now_s, option.gpus, round.costs)
    run_s = inf if work is None else work / option.rate + option.teardown_s
    return round.now_s + min(pause_s + run_s, round.may_hold_s(state))
