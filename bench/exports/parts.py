"""The history of each job as other tools describe it: the times that it spent on the same GPUs."""

from dataclasses import dataclass, replace

import numpy as np

from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.outcome.held_gpus import seats
from ronda.instances.schedule import JobOutcome, Schedule, Segment


@dataclass(frozen=True, slots=True)
class JobPart:
    """An uninterrupted time in which a job held the same GPUs, alone or in an array.

    `gpus` ascend and are numbered from 0 through the whole cluster, node by node. `energy_j` is the
    energy drawn by the job's share of these GPUs.
    """

    start_s: float
    end_s: float
    gpus: tuple[int, ...]
    energy_j: float


def parts_of(instance: Instance, schedule: Schedule) -> list[list[JobPart]]:
    """Return the parts of every job, in the schedule's order."""
    topology = instance.cluster.topology
    first = np.concatenate([[0], np.cumsum(topology.node_gpus)]).tolist()
    held: dict[tuple[str, float], list[int]] = {}
    for seat in seats(instance.cluster, schedule):
        for job in seat.jobs:
            own = held.setdefault((job, seat.segment.start_s), [])
            own += [first[seat.node] + gpu for gpu in seat.gpus]
    pairs = zip(instance.jobs, schedule.jobs, strict=True)
    return [_parts(instance, job, outcome, held) for job, outcome in pairs]


def _parts(
    instance: Instance, job: Job, outcome: JobOutcome, held: dict[tuple[str, float], list[int]]
) -> list[JobPart]:
    found: list[JobPart] = []
    for segment in outcome.segments:
        if segment.end_s == segment.start_s:
            continue
        gpus = tuple(sorted(held[job.id, segment.start_s]))
        energy_j = drawn_j(instance, job, segment)
        if found and found[-1].end_s == segment.start_s and found[-1].gpus == gpus:
            energy_j += found[-1].energy_j
            found[-1] = replace(found[-1], end_s=segment.end_s, energy_j=energy_j)
        else:
            found.append(JobPart(segment.start_s, segment.end_s, gpus, energy_j))
    return found


def drawn_j(instance: Instance, job: Job, segment: Segment) -> float:
    """Return the joules drawn by a job's share of its GPUs; during a pause they draw idle power."""
    option, power = segment.option, 1.0 if job.truth is None else job.truth.power
    idle_w = option.own_gpus * instance.cluster.topology.pools[option.pool].gpu_type.idle_w
    busy_s, pause_s = segment.end_s - segment.resume_s, segment.resume_s - segment.start_s
    return power * option.power_w * busy_s + idle_w * pause_s


def plain(value: float) -> str:
    """Write seconds or joules as a decimal number with at most six decimals."""
    return f"{value:.6f}".rstrip("0").rstrip(".")
