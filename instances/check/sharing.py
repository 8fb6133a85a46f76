"""The checker's own arithmetic of arrays, in which jobs share one GPU.

This module is written from the docstrings of `ronda.instances.profile` and shares nothing with
`ronda.instances.models`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from ronda.instances.cluster import GpuType
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Job, Option, same_nodes
from ronda.instances.profile import AffineTime, MeasuredTime, Memory, Profile, Sharing
from ronda.instances.schedule import Schedule, Segment
from ronda.instances.violation import Fault, Violation, exceeds

EIGHTHS = (8, 4, 2, 1, 1, 1, 1)
"""The eighths of an A100's memory in the smallest of 1, 2, … MIG slices (HFHT's profiles)."""


class Member(NamedTuple):
    """A job in an array, with its allocation or segment."""

    job: Job
    held: Allocation | Segment


def slowdown(profile: Profile, gpu_type: GpuType, option: Option) -> float | Fault:
    """Return the slowdown ``T(k) / T(1)`` of a job in an array against one alone, or a fault.

    The slowdown of a job with GPUs to itself is 1.
    """
    if option.width == 1 and option.mode == "exclusive":
        return 1.0
    if option.width == 1 or option.mode == "exclusive":
        return Fault("width", f"{option.width} jobs {option.mode}: one is exclusive, others share")
    if option.gpus != 1:
        return Fault("width", f"an array of {option.width} jobs on {option.gpus} GPUs, not on one")
    known = {s.mode: s for s in profile.sharing.get(gpu_type.name, ())}
    if option.mode not in known:
        return Fault("width", f"profile {profile.name!r} has no {option.mode} on {gpu_type.name}")
    alone_s, together_s = step_s(known["exclusive"], 1), step_s(known[option.mode], option.width)
    if alone_s is None or together_s is None:
        return Fault("width", f"{option.width} jobs {option.mode} are more than were measured")
    return together_s / alone_s


def step_s(sharing: Sharing, models: int) -> float | None:
    """Return the seconds of a step of `models` models, or None if they are unknown."""
    match sharing.time:
        case AffineTime(alpha_s=alpha_s, beta_s=beta_s, floor_s=floor_s):
            return max(alpha_s + models * beta_s, floor_s)
        case MeasuredTime(models=known, step_s=seconds):
            inside = known[0] <= models <= known[-1]
            return float(np.interp(models, known, seconds)) if inside else None


def memory_faults(
    memory: Memory | None, gpu_type: GpuType, option: Option, local_batch: float
) -> list[Fault]:
    """Return the fault of an array that does not fit the memory of its GPU.

    In mode "fused" one process holds all models, otherwise each has a process of its own.
    """
    if memory is None or option.width == 1:
        return []
    each = memory.model_gib + memory.sample_gib * local_batch
    room, needs = gpu_type.memory_gib, option.width * (memory.base_gib + each)
    if option.mode == "fused":
        needs = memory.base_gib + option.width * each
    if option.mode == "slices":
        if option.width > len(EIGHTHS):
            return [Fault("memory", f"{option.width} slices, but there are at most {len(EIGHTHS)}")]
        room, needs = room * EIGHTHS[option.width - 1] / 8, memory.base_gib + each
    if not exceeds(needs, room):
        return []
    message = f"{option.width} jobs {option.mode} need {needs:.6g} GiB of {room:.6g} GiB"
    return [Fault("memory", message)]


def distinct(allocations: Iterable[Allocation]) -> list[Allocation]:
    """Return one allocation per array and per GPU in parts, whose jobs hold one GPU, and others."""
    found: dict[object, Allocation] = {}
    for k, held in enumerate(allocations):
        found.setdefault(place_of(held) if one_gpu(held) else k, held)
    return list(found.values())


def shares(held: Allocation | Segment, job: Job) -> bool:
    """Return whether a job is in an array, or has a fusion class and claims a width above 1."""
    return held.array is not None or (held.option.width > 1 and job.fusible is not None)


def one_gpu(held: Allocation | Segment) -> bool:
    """Return whether a job may be on its GPU together with others."""
    return held.array is not None or bool(held.parts)


def place_of(held: Allocation | Segment) -> tuple[str | None, tuple[tuple[int, ...], ...]]:
    """Return a key that distinguishes the GPUs of different arrays, and GPUs in parts."""
    if held.parts:
        return None, tuple((node, gpu) for node, gpu, _ in held.parts)
    return held.array, held.placement


def plan_violations(
    allocations: Mapping[str, Allocation], jobs: Mapping[str, Job]
) -> list[Violation]:
    """Return the violations by a plan's arrays: wrong size, unlike options, or unlike places."""
    members: defaultdict[str, list[Member]] = defaultdict(list)
    for job_id, held in allocations.items():
        if job_id in jobs and shares(held, jobs[job_id]):
            members[held.array or ""].append(Member(jobs[job_id], held))
    return [v for name, those in members.items() for v in array_violations(name, those)]


def array_violations(name: str, members: Iterable[Member]) -> list[Violation]:
    """Return the first violation by an array as a whole, if any."""
    (one, first), *others = members
    option, count = first.option, 1 + len(others)
    message = ""
    if not name or option.width != count or count < 2:
        message = f"{count} jobs, but {option.width} as {one.id} runs"
    elif one.fusible is None:
        message = f"{one.id} has no fusion class"
    for job, held in others if not message else ():
        if (job.fusible, job.profile) != (one.fusible, one.profile):
            message = f"{job.id} is not of the class and profile of {one.id}"
        elif not held.option.same_way(option):
            message = f"{job.id} does not run as {one.id}"
        elif not same_nodes(held.placement, first.placement):
            message = f"{job.id} is not where {one.id} is"
    return [Violation("array", f"array {name}", message)] if message else []


def schedule_violations(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the violations of a schedule's arrays.

    The segments of an array begin, resume and end together. When a member leaves, the segments of
    the others end, and new ones begin in a narrower array.
    """
    members: defaultdict[tuple[str, float, float], list[Member]] = defaultdict(list)
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=True):
        for segment in outcome.segments:
            if shares(segment, job):
                key = segment.array or "", segment.start_s, segment.end_s
                members[key].append(Member(job, segment))
    found = []
    for (name, start_s, _), those in members.items():
        found += array_violations(name, those)
        if len({held.resume_s for _, held in those if isinstance(held, Segment)}) > 1:
            message = f"its jobs do not resume together after {start_s:.9g} s"
            found.append(Violation("array", f"array {name}", message))
    return found
