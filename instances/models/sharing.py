"""Models that share a GPU: array sizes, step times, and the speed and power of each member.

The models of an array progress in lock-step: a step of the array is a step of every member.

Only ratios of the profile's curves count. One of k members runs at ``T(1) / T(k)`` of its speed
alone, with T(1) taken from "exclusive". The GPU draws the power of one job, and each member bears
1/k of it.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from msgspec.structs import replace

from ronda.instances.cluster import Cluster, GpuType
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.models.memory import most_models
from ronda.instances.profile import AffineTime, MeasuredTime, Mode, Profile


def pace(profile: Profile, gpu_type: str, mode: Mode, width: int) -> float:
    """Return T(1) / T(k), the speed of an array's member relative to a job alone."""
    if width == 1 and mode == "exclusive":
        return 1.0
    times = {sharing.mode: sharing.time for sharing in profile.sharing[gpu_type]}
    return step_s(times["exclusive"], 1) / step_s(times[mode], width)


def widths(profile: Profile, gpu_type: GpuType, mode: Mode, local_batch: float) -> range:
    """Return the possible array sizes from two on, given a mode's curve and the GPU's memory."""
    times = {sharing.mode: sharing.time for sharing in profile.sharing.get(gpu_type.name, ())}
    if mode not in times or mode == "exclusive":
        return range(0)
    most, time = 1024, times[mode]
    if profile.memory is not None:
        most = most_models(profile.memory, mode, gpu_type.memory_gib, local_batch)
    elif mode == "slices":
        most = 7
    least = 2
    if isinstance(time, MeasuredTime):
        least, most = max(least, time.models[0]), min(most, time.models[-1])
    return range(least, most + 1)


def fastest_mode(
    profile: Profile, gpu_type: GpuType, width: int, local_batch: float
) -> tuple[Mode, float] | None:
    """Return the fastest mode for `width` jobs and their pace, or None if no mode holds them.

    Ties go to the mode that comes first in the profile.
    """
    if width == 1:
        return "exclusive", 1.0
    found = [
        (sharing.mode, pace(profile, gpu_type.name, sharing.mode, width))
        for sharing in profile.sharing.get(gpu_type.name, ())
        if width in widths(profile, gpu_type, sharing.mode, local_batch)
    ]
    return max(found, key=lambda way: way[1], default=None)


def member(option: Option, profile: Profile, gpu_type: str, mode: Mode, width: int) -> Option:
    """Return a job's option converted to an array of another width or mode."""
    faster = pace(profile, gpu_type, mode, width) / pace(
        profile, gpu_type, option.mode, option.width
    )
    return replace(
        option,
        mode=mode,
        width=width,
        rate=option.rate * faster,
        power_w=option.power_w * option.width / width,
    )


def together(states: Iterable[JobState]) -> list[tuple[JobState, ...]]:
    """Return groups of running jobs: the jobs of each array, and each other job alone."""
    found: dict[tuple[str | None, str | None], tuple[JobState, ...]] = {}
    for state in states:
        array = None if state.allocation is None else state.allocation.array
        key = (array, None if array else state.job.id)
        found[key] = (*found.get(key, ()), state)
    return list(found.values())


def any_array(states: Iterable[JobState]) -> bool:
    """Return whether any of some jobs runs in an array."""
    return any(s.allocation is not None and s.allocation.array is not None for s in states)


def may_stop(states: Iterable[JobState]) -> bool:
    """Return whether jobs that run together may be stopped, that is whether each of them may."""
    return all(state.job.preemptible for state in states)


def ready_together(
    begin: Mapping[str, Allocation], own_s: Mapping[str, float]
) -> dict[str | None, float]:
    """Return the time at which all jobs of each new array are ready to progress.

    `own_s` holds the times at which the jobs would be ready on their own.
    """
    found: dict[str | None, float] = {}
    for job_id, held in begin.items():
        if held.array is not None:
            found[held.array] = max(own_s[job_id], found.get(held.array, 0.0))
    return found


def whole(allocations: Mapping[str, Allocation]) -> dict[str, Allocation]:
    """Return the allocations with each array replaced by one job with all of the GPU's watts."""
    found, seen = dict[str, Allocation](), set[object]()
    for job_id, held in allocations.items():
        if held.array is None:
            found[job_id] = held
        elif (held.array, held.placement) not in seen:
            seen.add((held.array, held.placement))
            power_w = held.option.power_w * held.option.width
            option = replace(held.option, width=1, mode="exclusive", power_w=power_w)
            found[job_id] = Allocation(option=option, placement=held.placement)
    return found


def narrowed(
    allocations: Mapping[str, Allocation],
    jobs: Mapping[str, Job],
    profiles: Mapping[str, Profile],
    cluster: Cluster,
) -> dict[str, Allocation]:
    """Return the narrower allocations of arrays that have lost members.

    A last remaining job gets its GPU to itself. Complete arrays are left out.
    """
    members: defaultdict[str, list[str]] = defaultdict(list)
    for job_id, held in allocations.items():
        if held.array is not None:
            members[held.array].append(job_id)
    pools, found = cluster.topology.pools, dict[str, Allocation]()
    for name, ids in members.items():
        width = len(ids)
        for job_id in ids:
            held = allocations[job_id]
            if held.option.width <= width:
                continue
            mode: Mode = held.option.mode if width > 1 else "exclusive"
            gpu_type = pools[held.option.pool].gpu_type.name
            option = member(held.option, profiles[jobs[job_id].profile], gpu_type, mode, width)
            array = name if width > 1 else None
            found[job_id] = Allocation(option=option, placement=held.placement, array=array)
    return found


def step_s(time: AffineTime | MeasuredTime, models: int) -> float:
    """Return T(k), the seconds in which all k models take a step.

    It is ``max(floor, alpha + beta k)``, or linear between measured k. A k outside of the
    measurements raises an InputError.
    """
    if isinstance(time, AffineTime):
        return max(time.floor_s, time.alpha_s + time.beta_s * models)
    known, seconds = time.models, time.step_s
    if not known[0] <= models <= known[-1]:
        raise InputError("models", str(models), f"measured numbers, {known[0]} to {known[-1]}")
    k = bisect_left(known, models)
    if known[k] == models:
        return seconds[k]
    share = (models - known[k - 1]) / (known[k] - known[k - 1])
    return seconds[k - 1] + share * (seconds[k] - seconds[k - 1])


def speed_up(time: AffineTime | MeasuredTime, models: int, alone_s: float) -> float:
    """Return k T(1) / T(k), the speed-up of k models in an array over one after another."""
    return models * alone_s / step_s(time, models)


T = TypeVar("T")


def first_fit(members: Sequence[T], most: int) -> list[Sequence[T]]:
    """Return full arrays and a last array with the rest, as HFHT does."""
    return [members[at : at + most] for at in range(0, len(members), most)]


def balanced(members: Sequence[T], arrays: int) -> list[Sequence[T]]:
    """Return `arrays` arrays whose sizes differ by at most one, larger arrays first."""
    size, more = divmod(len(members), arrays)
    ends = [0]
    for array in range(arrays):
        ends.append(ends[-1] + size + (array < more))
    return [members[a:b] for a, b in pairwise(ends) if b > a]
