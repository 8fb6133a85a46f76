"""The numbers of the GPUs that jobs held, for schedules that record only how many."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from ronda.instances.cluster import Cluster
from ronda.instances.schedule import Schedule, Segment


@dataclass(frozen=True, slots=True)
class Seat:
    """The GPUs of a node that a job, or the jobs of an array together, held for a segment.

    `gpus` are ascending GPU numbers, which start at 0 on each node.
    """

    jobs: tuple[str, ...]
    segment: Segment
    node: int
    gpus: tuple[int, ...]


def seats(cluster: Cluster, schedule: Schedule) -> list[Seat]:
    """Assign GPUs to every segment so that overlapping segments share none.

    A job that continues without a break keeps its GPUs. Otherwise the lowest free GPUs are taken.
    Equal schedules get equal numbers. Segments of zero length get no GPUs. If a schedule holds more
    GPUs than a node has, the surplus gets none.
    """
    free = [set(range(int(gpus))) for gpus in cluster.topology.node_gpus]
    held: list[tuple[float, int, tuple[int, ...]]] = []  # (end, node, GPUs) by end
    latest: dict[tuple[str, int], tuple[float, tuple[int, ...]]] = {}  # of a job on a node
    found: list[Seat] = []
    for start_s, together in groupby(_taken(schedule), key=lambda each: each[1].start_s):
        while held and held[0][0] <= start_s:
            _, node, gpus = heapq.heappop(held)
            free[node].update(gpus)
        asked = [(jobs, s, node, n) for jobs, s in together for node, n in s.placement]
        kept: list[set[int]] = []
        for jobs, _, node, count in asked:
            before = (latest.get((job, node), (-1.0, ())) for job in jobs)
            own = {gpu for end_s, gpus in before if end_s == start_s for gpu in gpus}
            kept.append({*sorted(own & free[node])[:count]})
            free[node] -= kept[-1]
        for (jobs, segment, node, count), own in zip(asked, kept, strict=True):
            more = sorted(free[node])[: count - len(own)]
            free[node].difference_update(more)
            gpus = tuple(sorted([*own, *more]))
            heapq.heappush(held, (segment.end_s, node, gpus))
            latest |= {(job, node): (segment.end_s, gpus) for job in jobs}
            found.append(Seat(jobs, segment, node, gpus))
    return found


def _taken(schedule: Schedule) -> Iterator[tuple[tuple[str, ...], Segment]]:
    """Yield jobs with their segments in order of start; the jobs of an array come together."""
    found: dict[object, tuple[list[str], Segment]] = {}
    for outcome in schedule.jobs:
        for s in outcome.segments:
            alone = s.array is None
            key = (outcome.id if alone else s.array, alone, s.placement, s.start_s, s.end_s)
            if s.end_s > s.start_s:
                found.setdefault(key, ([], s))[0].append(outcome.id)
    by_start = sorted(found.values(), key=lambda each: (each[1].start_s, each[0][0]))
    return ((tuple(jobs), segment) for jobs, segment in by_start)
