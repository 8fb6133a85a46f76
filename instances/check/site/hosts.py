"""The checker's statement of the resources of hosts and of licences.

On each node a job takes its need for each GPU there and for each node, and once, on the node with
the fewest of its GPUs (the first of these in its placement), what it needs once. A job holds its
licences while it holds GPUs. An array counts as one job. What others hold is subtracted. If others
came later, what runs may go on: too much on a node is a violation only if some of it is taken by a
job that comes or changes, and too many licences only if they are more than now.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from ronda.instances.check.sharing import place_of
from ronda.instances.check.site.given import JobInPlan
from ronda.instances.cluster import Cluster
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Job
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule, Segment
from ronda.instances.violation import RELATIVE, ROUNDING, Violation

Held = dict[tuple[int, str], float]
"""The amount of a resource on a node, or of a licence on the node -1."""


def host_faults(round: Round, plan: Plan, given: list[JobInPlan]) -> list[Violation]:
    """Return the nodes where a plan takes more than others leave, and the licences likewise."""
    if not _counts(round.cluster):
        return []
    after = _sums((each.state.job, each.allocation) for each in given)
    over = {
        place: left
        for place, left in _left(round.cluster, after).items()
        if after[place] > _allowed(left, after[place])
    }
    if not over:
        return []
    now = _sums((each.state.job, each.state.allocation) for each in given)
    new = _sums((each.state.job, each.allocation) for each in given if not _stays(each))
    return [
        _over(*place, after[place], left)
        for place, left in over.items()
        if (after[place] > now.get(place, 0.0) if place[0] < 0 else new.get(place, 0.0) > 0)
    ]


def host_faults_in_time(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the first time at which a schedule takes more of a node or a licence than is left."""
    if not _counts(instance.cluster):
        return []
    changes: defaultdict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    seen: set[object] = set()
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=True):
        for segment in outcome.segments if job.needs or job.licences else ():
            key = (*place_of(segment), segment.start_s, segment.end_s)
            if segment.array is not None and key in seen:
                continue
            seen.add(key)
            for place, amount in _amounts(job, segment):
                changes[place] += [(segment.start_s, amount), (segment.end_s, -amount)]
    left = _left(instance.cluster, changes)
    return [
        fault
        for (node, name), steps in sorted(changes.items())
        if (node, name) in left
        for fault in _first(node, name, sorted(steps), left[node, name])
    ]


def _first(
    node: int, name: str, steps: list[tuple[float, float]], left: float
) -> Iterator[Violation]:
    """Yield the first time at which the sum of steps (time, change) is above what is left."""
    held, most = 0.0, max(abs(change) for _, change in steps)
    for k, (time_s, change) in enumerate(steps):
        held += change
        last = k + 1 == len(steps) or steps[k + 1][0] > time_s
        if last and held > _allowed(left, most):
            yield _over(node, name, held, left, f" from {time_s:.9g} s")
            return


def _stays(each: JobInPlan) -> bool:
    held, then = each.state.allocation, each.allocation
    return each.kept or (held is not None and then is not None and held.narrows_to(then))


def _counts(cluster: Cluster) -> bool:
    return bool(cluster.licences) or any(group.has for group in cluster.node_groups)


def _sums(jobs: Iterable[tuple[Job, Allocation | None]]) -> Held:
    found: defaultdict[tuple[int, str], float] = defaultdict(float)
    seen: set[object] = set()
    for job, held in jobs:
        if held is None or not (job.needs or job.licences):
            continue
        if held.array is not None:
            if place_of(held) in seen:
                continue
            seen.add(place_of(held))
        for place, amount in _amounts(job, held):
            found[place] += amount
    return found


def _amounts(job: Job, held: Allocation | Segment) -> Iterator[tuple[tuple[int, str], float]]:
    """Yield what a job takes of each resource on each of its nodes, and of licences."""
    once, _ = min(held.placement, key=lambda piece: piece[1], default=(-1, 0))
    for name, need in job.needs.items():
        for node, gpus in held.placement:
            flat = need.flat if node == once else 0.0
            yield (node, name), need.per_gpu * gpus + need.per_node + flat
    for name, count in job.licences.items():
        yield (-1, name), float(count)


def _left(cluster: Cluster, places: Iterable[tuple[int, str]]) -> Held:
    """Return what others leave of each resource on each node, unless it is unlimited."""
    if not any(group.has for group in cluster.node_groups):
        places = [place for place in places if place[0] < 0]
    groups = [group for group in cluster.node_groups for _ in range(group.count)]
    left = {
        (node, name): float(cluster.licences.get(name, 0) - cluster.licences_taken.get(name, 0))
        if node < 0
        else groups[node].has.get(name, 0.0)
        for node, name in places
        if node < len(groups)
    }
    for node, name, amount in cluster.taken:
        if (node, name) in left:
            left[node, name] -= amount
    return left


def _allowed(left: float, most: float) -> float:
    """Return a limit with what is rounding in sums of numbers up to `most`."""
    return left + RELATIVE * abs(left) + ROUNDING * most


def _over(node: int, name: str, amount: float, left: float, when: str = "") -> Violation:
    if node < 0:
        message = f"{amount:g} are held of {left:g} that there are{when}"
        return Violation("licence", f"licence {name}", message)
    message = f"jobs take {amount:.9g} of {name}, others leave {left:.9g}{when}"
    return Violation("host", f"node {node}", message)
