"""The use of GPUs and power over time, as step series."""

from dataclasses import dataclass

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.check.timeline import flatten, power_steps, with_off_times
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage as T steps from 0 to the schedule's end; each value holds until the next time.

    `gpus` is the number of GPUs that jobs hold, `watts` the power of the whole cluster.
    """

    time_s: Floats
    gpus: Floats
    watts: Floats


def usage_of(instance: Instance, schedule: Schedule) -> Usage:
    """Return GPUs and watts over time, computed with the checker's physics.

    A GPU whose job progresses draws the power of the job's option times the job's true power
    factor. Any other GPU draws its idle power. Waking, sleeping and off nodes are included. The
    integral of the watts is the schedule's energy.
    """
    topology = instance.cluster.topology
    flat, _ = with_off_times(flatten(instance, schedule), instance.faults, schedule.end_s)
    everything = np.ones(len(topology.node_gpus), dtype=bool)
    times, watts = power_steps(flat, topology, everything, schedule.end_s)
    times = np.concatenate([times, flat.start_s, flat.end_s, [schedule.end_s]])
    gpus, none = flat.gpus / flat.width, np.zeros(2 * len(flat.start_s) + 1)
    held = np.concatenate([np.zeros(len(watts)), gpus, -gpus, [0.0]])
    return Usage(*steps(times, held, np.concatenate([np.diff(watts, prepend=0.0), none])))


def queue_of(schedule: Schedule) -> tuple[Floats, Floats]:
    """Return ascending times in seconds, and the number of live jobs without GPUs, shapes (T,)."""
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
    """Return the distinct times, ascending, and the value of each series from each time on.

    `times` (N,) are the times of the `changes` (N,).
    """
    order = np.argsort(times, kind="stable")
    sorted_times = times[order]
    last = np.append(np.diff(sorted_times) > 0, True)
    return sorted_times[last], *(np.cumsum(change[order])[last] for change in changes)
