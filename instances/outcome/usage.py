"""What was used over time, as step series."""

from dataclasses import dataclass

import numpy as np

from ronda.instances.arrays import Floats
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Usage:
    """Step series (T,), from 0 to the schedule's end: a value holds until the next time.

    `gpus` are those that jobs hold, `watts` the power of the whole cluster.
    """

    time_s: Floats
    gpus: Floats
    watts: Floats


def usage_of(instance: Instance, schedule: Schedule) -> Usage:
    """Return GPUs and watts over time.

    A GPU draws its idle power unless its job progresses; then it draws its option's power, times
    what the job truly draws of that. A sleeping node draws only its sleeping power.
    """
    topology = instance.cluster.topology
    truly = {job.id: job.truth.power for job in instance.jobs if job.truth is not None}
    idle_w = [pool.gpu_type.idle_w for pool in topology.pools]
    times, gpus, watts = [0.0, schedule.end_s], [0.0, 0.0], [topology.idle_w, 0.0]
    for outcome in schedule.jobs:
        for segment in outcome.segments:
            option = segment.option
            busy_w = option.power_w * truly.get(outcome.id, 1.0)
            extra_w = busy_w - option.own_gpus * idle_w[option.pool]
            times += [segment.start_s, segment.resume_s, segment.end_s, segment.end_s]
            gpus += [option.own_gpus, 0, -option.own_gpus, 0]
            watts += [0.0, extra_w, -extra_w, 0.0]
    saved_w = topology.awake_w - topology.sleep_w
    for node, start_s, end_s in schedule.sleeps:
        times += [start_s, end_s]
        gpus += [0, 0]
        watts += [-float(saved_w[node]), float(saved_w[node])]
    return Usage(*steps(np.array(times), np.array(gpus, float), np.array(watts)))


def queue_of(schedule: Schedule) -> tuple[Floats, Floats]:
    """Return (T,) seconds, ascending, and (T,) the live jobs without GPUs from each on."""
    times, waiting = [0.0, schedule.end_s], [0.0, 0.0]
    for outcome in schedule.jobs:
        end_s = schedule.end_s if outcome.end_s is None else outcome.end_s
        times += [outcome.submit_s, end_s]
        waiting += [1.0, -1.0]
        for segment in outcome.segments:
            times += [segment.start_s, segment.end_s]
            waiting += [-1.0, 1.0]
    found_s, jobs = steps(np.array(times), np.array(waiting))
    return found_s, jobs


def steps(times: Floats, *changes: Floats) -> tuple[Floats, ...]:
    """Return the distinct times, ascending, and what each series is from each of them on.

    `times` (N,) are those of `changes` (N,).
    """
    order = np.argsort(times, kind="stable")
    sorted_times = times[order]
    last = np.append(np.diff(sorted_times) > 0, True)
    return sorted_times[last], *(np.cumsum(change[order])[last] for change in changes)
