"""The check of a plan against its round, from scratch."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ronda.instances.check.option import Examiner
from ronda.instances.check.sharing import distinct, plan_violations
from ronda.instances.check.site.min_run import may_change
from ronda.instances.check.site.rules import site_violations
from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.violation import Violation, exceeds


def check_plan(round: Round, plan: Plan) -> list[Violation]:
    """Return every violation by a plan; see `ronda.instances.check.checker.check`."""
    examiner = Examiner(round.cluster, round.profiles)
    states = {state.job.id: state for state in round.jobs}
    found = []
    for job_id, allocation in plan.allocations.items():
        found += allocation_violations(examiner, job_id, states.get(job_id), allocation)
    found += must_run_violations(round.running, plan)
    found += discard_violations(states, plan)
    found += plan_violations(plan.allocations, {i: s.job for i, s in states.items()})
    asleep = asleep_after(round, plan)
    nodes = len(examiner.node_pool)
    used = np.zeros(nodes, dtype=np.int64)
    for allocation in distinct(plan.allocations.values()):
        for node, count in allocation.placement:
            if 0 <= node < nodes:
                used[node] += count
    gpus = round.cluster.topology.node_gpus
    for node in np.flatnonzero(used > gpus).tolist():
        found.append(over_capacity(node, int(used[node]), int(gpus[node])))
    found += asleep_violations(asleep, nodes, used.tolist())
    found += site_violations(round, plan)
    broken = _power(_draws(round, plan, asleep), round)
    return found + (broken and avoidable(round, plan))


def avoidable(round: Round, plan: Plan) -> list[Violation]:
    """Return the violations of caps and budgets that jobs which may not be stopped do not force.

    Each limit is raised to what such jobs use alone. Other nodes sleep if that saves power.
    """
    alone, asleep = _alone(round), asleep_after(round, plan)
    draws = _draws(round, plan, asleep)
    if alone is None:
        return _power(draws, round)
    least = _draws(replace(round, asleep=()), alone, alone.asleep or ())
    _, least_j, _, allowed_j = uses(round, *least[:3])
    over_j = float((least_j - allowed_j).max(initial=0.0))
    cap_w, energy_j, bank_j = round.power_cap_w, round.energy_j, round.banked_j
    borne = replace(
        round,
        power_cap_w=None if cap_w is None else max(cap_w, least.watts),
        energy_j=None if energy_j is None else energy_j + over_j,
        banked_j=None if bank_j is None else bank_j + over_j,
    )
    racks = zip(draws.racks, least.racks, strict=True)
    raised = [(rack, max(cap_w, own_w), watts) for (rack, cap_w, watts), (_, _, own_w) in racks]
    return _power(draws._replace(racks=raised), borne)


def _alone(round: Round) -> Plan | None:
    """Return a plan of only the jobs that may not be stopped and the members of their arrays."""
    states = [(s, s.allocation) for s in round.running if s.allocation is not None]
    firm = {s.job.id for s, _ in states if not may_change(round, s)}
    arrays = {a.array for s, a in states if a.array and s.job.id in firm}
    alone = {s.job.id: a for s, a in states if s.job.id in firm or a.array in arrays}
    return _asleep_elsewhere(round, alone) if alone else None


def _asleep_elsewhere(round: Round, alone: dict[str, Allocation]) -> Plan:
    """Return the plan of given jobs in which other nodes sleep if that saves power."""
    topology = round.cluster.topology
    saves = topology.sleep_w < base_w(round.cluster, ())
    saves[[node for held in alone.values() for node, _ in held.placement]] = False
    return Plan(allocations=alone, asleep=tuple(np.flatnonzero(saves).tolist()))


def can_all_go_on(round: Round) -> bool:
    """Return whether all that runs can go on within the limits on power and energy."""
    if round.watts is None and all(rack.power_cap_w is None for rack in round.cluster.racks):
        return True
    plan = _asleep_elsewhere(round, round.held)
    return not _power(_draws(replace(round, asleep=()), plan, plan.asleep or ()), round)


class _Draws(NamedTuple):
    """The power of a plan: total watts, watts of waking nodes, ends of jobs, and capped racks."""

    watts: float
    wake: NDArray[np.float64]
    ends: NDArray[np.float64]
    racks: list[tuple[str, float, float]]  # name, cap, watts


def _power(draws: _Draws, round: Round) -> list[Violation]:
    """Return the violations of caps and budgets by a plan's power."""
    found = cluster_violations(round, *draws[:3])
    for rack, cap_w, watts in draws.racks:
        found += rack_violations(rack, cap_w, watts)
    return found


def _draws(round: Round, plan: Plan, asleep: tuple[int, ...]) -> _Draws:
    """Return the power of a plan with some nodes asleep."""
    base = base_w(round.cluster, asleep)
    idle_w: list[float] = round.cluster.topology.gpu_idle_w.tolist()
    everything = np.ones(len(idle_w), dtype=bool)
    allocations = plan.allocations.values()
    wake = waking_w(round, round.asleep, asleep)
    still = waking_w(round, round.waking, asleep)

    def watts(mask: NDArray[np.bool_]) -> float:
        counted: list[bool] = mask.tolist()
        return float(base[mask].sum()) + sum(extra_w(a, idle_w, counted) for a in allocations)

    racks = [
        (rack, cap_w, watts(mask) + float((wake + still)[mask].sum()))
        for rack, cap_w, mask in capped_racks(round.cluster)
    ]
    ends = ending(round, round.jobs, plan, idle_w)
    return _Draws(watts(everything), wake, ends, racks)


def allocation_violations(
    examiner: Examiner, job_id: str, state: JobState | None, allocation: Allocation
) -> list[Violation]:
    """Return the violations within one job's allocation, which include a job that is not live."""
    if state is None:
        return [Violation("unknown-job", f"job {job_id}", "no live job has this id")]
    kept = continues(state.allocation, allocation)
    return examiner.allocation(state, allocation, kept=kept)


def must_run_violations(states: Iterable[JobState], plan: Plan) -> list[Violation]:
    """Return the violations by jobs that are stopped or changed although they may not be."""
    found = []
    for state in states:
        if state.job.preemptible or state.allocation is None:
            continue
        given = plan.allocations.get(state.job.id)
        if given is None:
            message = "runs and may not be preempted, but the plan stops it"
        elif not continues(state.allocation, given) and not state.allocation.narrows_to(given):
            message = "runs and may not be preempted, but the plan changes it"
        else:
            continue
        found.append(Violation("must-run", f"job {state.job.id}", message))
    return found


def discard_violations(states: Mapping[str, JobState], plan: Plan) -> list[Violation]:
    """Return the violations by discarded jobs; `states` holds the live jobs."""
    found = []
    for job_id, times in Counter(plan.discarded).items():
        where, state = f"job {job_id}", states.get(job_id)
        if state is None:
            found.append(Violation("unknown-job", where, "no live job has this id"))
            continue
        if state.job.sweep is None:
            found.append(Violation("discard", where, "is given up, but no trial of a sweep"))
        elif not state.job.preemptible:
            found.append(Violation("discard", where, "is given up, but may not be stopped"))
        if job_id in plan.allocations:
            found.append(Violation("discard", where, "is given up, and has GPUs"))
        if times > 1:
            found.append(Violation("discard", where, f"is given up {times} times"))
    return found


def continues(held: Allocation | None, given: Allocation) -> bool:
    """Return whether a job continues unchanged, apart from its expected rate."""
    if held is None or held is given:
        return held is given
    return (
        held.placement == given.placement
        and held.array == given.array
        and held.parts == given.parts
        and same_option(held.option, given.option)
    )


def same_option(a: Option, b: Option) -> bool:
    """Return whether two options are equal except for the expected rate."""
    return a is b or a == replace(b, rate=a.rate)


def asleep_after(round: Round, plan: Plan) -> tuple[int, ...]:
    """Return the nodes that sleep under a plan."""
    return round.asleep if plan.asleep is None else plan.asleep


def over_capacity(node: int, used: int, gpus: int) -> Violation:
    """Return the violation by a node that has fewer GPUs than are placed on it."""
    return Violation("capacity", f"node {node}", f"{used} GPUs placed, but it has {gpus}")


def asleep_violations(asleep: tuple[int, ...], nodes: int, used: list[int]) -> list[Violation]:
    """Return the violations by the sleeping nodes, given the GPUs in use on each node."""
    found = []
    if len(set(asleep)) < len(asleep):
        found.append(Violation("duplicate-node", "asleep", "a node is named twice"))
    for node in asleep:
        if not 0 <= node < nodes:
            found.append(Violation("node", "asleep", f"there is no node {node}"))
        elif used[node]:
            found.append(asleep_in_use(node, used[node]))
    return found


def asleep_in_use(node: int, used: int) -> Violation:
    """Return the violation by a node that sleeps and runs jobs."""
    return Violation("asleep", f"node {node}", f"{used} GPUs placed on it, but it sleeps")


def base_w(cluster: Cluster, asleep: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the watts of every node without jobs, shape (N,): host and idle GPUs, or asleep."""
    topology = cluster.topology
    base = topology.host_idle_w + topology.node_gpus * topology.gpu_idle_w
    sleeping = [node for node in asleep if 0 <= node < len(base)]
    base[sleeping] = topology.sleep_w[sleeping]
    return base


def waking_w(round: Round, before: tuple[int, ...], asleep: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the watts of waking nodes on top of their idle power, shape (N,).

    The nodes `before` sleep or are waking before the plan. The nodes `asleep` sleep under it.
    """
    topology = round.cluster.topology
    waking = np.zeros(len(topology.wake_w))
    if not before:
        return waking
    woken = sorted(set(before) - set(asleep))
    waking[woken] = topology.wake_w[woken] * (topology.wake_s[woken] > 0)
    return waking


def extra_w(allocation: Allocation, idle_w: Sequence[float], mask: Sequence[bool]) -> float:
    """Return the watts that a job adds to the idle power of its GPUs, on some of the nodes.

    Each of its GPUs draws the same share of ``option.power_w``. `idle_w` (N,) is the idle power of
    one GPU of each node, and `mask` (N,) selects the nodes to count. Nodes that do not exist are
    ignored. Each member of an array counts for an even share of its GPU.
    """
    option = allocation.option
    each_w = option.power_w / option.gpus if option.gpus else 0.0
    jobs = option.width if option.share is None else 1.0 / option.share  # on the GPU, if all alike
    return sum(
        count * (each_w - idle_w[node] / jobs)
        for node, count in allocation.placement
        if 0 <= node < len(mask) and mask[node]
    )


def capped_racks(cluster: Cluster) -> list[tuple[str, float, NDArray[np.bool_]]]:
    """Return the name, cap in watts and nodes (N,) of the subtree of every capped rack."""
    topology = cluster.topology
    parents = {rack.name: rack.parent for rack in cluster.racks}
    found = []
    for rack in cluster.racks:
        if rack.power_cap_w is None:
            continue
        below = [_is_below(name, rack.name, parents) for name in topology.racks]
        found.append((rack.name, rack.power_cap_w, np.array(below)[topology.node_rack]))
    return found


def _is_below(name: str | None, ancestor: str, parents: dict[str, str | None]) -> bool:
    for _ in range(len(parents) + 1):
        if name == ancestor:
            return True
        name = parents.get(name) if name is not None else None
    return False


def ending(
    round: Round, states: Iterable[JobState], plan: Plan, idle_w: Sequence[float]
) -> NDArray[np.float64]:
    """Return the seconds and watts of jobs that should end inside the window, shape (k, 2).

    The watts are those that a job adds to its idle GPUs while it progresses.
    """
    everywhere, found = [True] * len(idle_w), list[tuple[float, float]]()
    for state in states if round.energy_j is not None else ():
        given, work = plan.allocations.get(state.job.id), state.remaining_at(round.now_s)
        if given is None or not given.option.rate > 0:
            continue
        seconds = np.inf if work is None else work / given.option.rate + given.option.teardown_s
        seconds = min(seconds, round.may_hold_s(state))
        if seconds < round.window_s:
            found.append((seconds, extra_w(given, idle_w, everywhere)))
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def cluster_violations(
    round: Round, watts: float, waking: NDArray[np.float64], ends: NDArray[np.float64]
) -> list[Violation]:
    """Compare the cluster's power with the round's power cap and energy.

    The cluster draws `watts` once woken nodes are awake. Until then it also draws `waking` (N,).
    Its power falls at each of the `ends` (see `ending`).
    """
    found = []
    cap_w, at_first = round.power_cap_w, watts + float(waking.sum())
    if cap_w is not None and exceeds(at_first, cap_w):
        found.append(Violation("power", "cluster", f"draws {at_first:.6g} W of {cap_w:.6g} W"))
    used = uses(round, watts, waking, ends)
    for t, joules, wake_j, allowed_j in used[:, ~(used[1] <= used[3])].T.tolist():
        if exceeds(joules, allowed_j):  # the first such time in the window
            waking_too = f", {wake_j:.6g} J of it to wake," if wake_j else ""
            message = f"uses {joules:.6g} J{waking_too} of {allowed_j:.6g} J in {t:g} s"
            return [*found, Violation("energy", "cluster", message)]
    return found


def uses(
    round: Round, watts: float, waking: NDArray[np.float64], ends: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return times, joules used by then, joules spent on waking and joules allowed, shape (4, t).

    The times lie in the window. Consumption changes its slope only when a job ends or a node is
    awake, and the supply never does. No time in between can therefore be worse. The arguments are
    those of `cluster_violations`.
    """
    energy_j, window_s = round.energy_j, round.window_s
    if energy_j is None:
        return np.zeros((4, 0))
    wake_s = np.minimum(round.cluster.topology.wake_s, window_s)[waking > 0]
    at_once = energy_j if round.banked_j is None else round.banked_j
    end_s, end_w = ends[ends[:, 0].argsort(kind="stable")].T
    times = np.sort(np.concatenate([end_s[end_s > 0], wake_s, [window_s]]))
    ended = np.searchsorted(end_s, times, side="left")
    ended_w, ended_j = (np.append(0.0, np.cumsum(w))[ended] for w in (end_w, end_w * end_s))
    wake_j = np.minimum(wake_s, times[:, None]) @ waking[waking > 0]
    joules = (watts - ended_w) * times + ended_j + wake_j
    allowed_j = at_once + (energy_j - at_once) * times / window_s
    return np.stack([times, joules, wake_j, allowed_j])


def rack_violations(rack: str, cap_w: float, watts: float) -> list[Violation]:
    """Compare a rack's power with its cap."""
    if not exceeds(watts, cap_w):
        return []
    return [Violation("rack-power", f"rack {rack}", f"draws {watts:.6g} W of {cap_w:.6g} W")]
