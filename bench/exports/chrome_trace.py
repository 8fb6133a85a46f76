"""A schedule in the Trace Event Format, the JSON that Perfetto and Chrome show as a timeline.

In Google's "Trace Event Format", nodes are processes, GPUs are threads, allocations are complete
events ("X"), and stepwise quantities are counter events ("C"). Times are whole microseconds.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np

import ronda
from ronda.instances.budget import StepSeries
from ronda.instances.instance import Instance
from ronda.instances.outcome.held_gpus import Seat, seats
from ronda.instances.outcome.usage import queue_of, steps, usage_of
from ronda.instances.schedule import Schedule

Event = dict[str, Any]


def chrome_trace(instance: Instance, schedule: Schedule) -> str:
    """Return the JSON text.

    A GPU has a slice of the category ``allocation`` for each segment in which a job, or an array of
    jobs, holds it. The lengths of the slices add up to the schedule's GPU-seconds. The numbers of
    processes and threads are all distinct; processes count from 1 in the order of nodes. The
    cluster is the last process and has all counters.
    """
    about = {
        "instance": schedule.instance,
        "policy": schedule.policy,
        "seed": schedule.seed,
        "ronda": ronda.__version__,
    }
    events = [*_machines(instance), *_slices(instance, schedule), *_counters(instance, schedule)]
    document = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}
    return msgspec.json.encode(document).decode()


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


def _threads(instance: Instance) -> list[int]:
    """Return the thread number of each node's first GPU; processes have lower numbers."""
    gpus = instance.cluster.topology.node_gpus
    before = np.cumsum(gpus) - gpus
    return [len(gpus) + 2 + int(each) for each in before]


def _machines(instance: Instance) -> Iterator[Event]:
    """Name the cluster, its nodes and their GPUs, and set the order in which they are shown."""
    topology, groups = instance.cluster.topology, instance.cluster.node_groups
    first, nodes = _threads(instance), len(topology.node_gpus)

    def named(kind: str, pid: int, **more: Any) -> Event:
        return {"ph": "M", "name": kind, "pid": pid, **more}

    yield named("process_name", nodes + 1, args={"name": f"cluster {instance.name}"})
    yield named("process_sort_index", nodes + 1, args={"sort_index": 0})
    for node in range(nodes):
        group = groups[int(topology.node_group[node])]
        rack = "" if group.rack is None else f", rack {group.rack}"
        name = f"node {node} ({group.name}, {group.gpu_type}{rack})"
        yield named("process_name", node + 1, args={"name": name})
        yield named("process_sort_index", node + 1, args={"sort_index": node + 1})
        for gpu in range(group.gpus_per_node):
            tid = first[node] + gpu
            yield named("thread_name", node + 1, tid=tid, args={"name": f"GPU {gpu}"})
            yield named("thread_sort_index", node + 1, tid=tid, args={"sort_index": gpu})


def _slices(instance: Instance, schedule: Schedule) -> Iterator[Event]:
    first = _threads(instance)
    users = {job.id: job.user for job in instance.jobs}
    for seat in seats(instance.cluster, schedule):
        segment, job = seat.segment, seat.jobs[0]
        args = _args(instance, seat, users[job])
        name = job if segment.array is None else f"{segment.array} ({len(seat.jobs)} jobs)"
        for gpu in seat.gpus:
            yield {
                "ph": "X",
                "cat": "allocation",
                "name": name,
                "pid": seat.node + 1,
                "tid": first[seat.node] + gpu,
                "ts": _us(segment.start_s),
                "dur": _us(segment.end_s) - _us(segment.start_s),
                "args": args,
            }


def _args(instance: Instance, seat: Seat, user: str | None) -> Event:
    """Return the details of an allocation; the rate and watts of an array are those of each job."""
    segment, option = seat.segment, seat.segment.option
    pool = instance.cluster.topology.pools[option.pool].name
    ways = [f"{option.gpus} GPUs of {pool}", f"clock {option.clock:g}", f"batch {option.batch:g}"]
    if option.width > 1:
        ways.append(f"{option.width} jobs {option.mode}")
    found: Event = {"job": ", ".join(seat.jobs)}
    if user is not None:
        found["user"] = user
    return found | {
        "option": ", ".join(ways),
        "rate": option.rate,
        "watts": option.power_w,
        "work done": segment.done,
        "pause (s)": segment.resume_s - segment.start_s,
    }


def _counters(instance: Instance, schedule: Schedule) -> Iterator[Event]:
    """Yield the cluster's time series as counter events, one for each change of a value."""
    pid = len(instance.cluster.topology.node_gpus) + 1
    usage, budget = usage_of(instance, schedule), instance.budget
    series: dict[str, Iterable[tuple[float, float]]] = {
        "GPUs in use": zip(usage.time_s, usage.gpus, strict=True),
        "power (W)": zip(usage.time_s, usage.watts, strict=True),
        "queue (jobs)": zip(*queue_of(schedule), strict=True),
        "nodes asleep": _asleep(schedule),
        "power cap (W)": _given(budget.power_cap_w, schedule.end_s),
        "energy price (per J)": _given(budget.energy_price_per_j, schedule.end_s),
        "carbon (g per J)": _given(budget.carbon_g_per_j, schedule.end_s),
    }
    for name in dict.fromkeys(name for record in schedule.rounds for name in record.prices):
        told = {r.now_s: r.prices.get(name, 0.0) for r in schedule.rounds if r.prices}
        series[f"price of {name}"] = told.items()
    for name, values in series.items():
        last = None
        for time_s, value in values:
            if value != last:
                args = {"value": float(value)}
                yield {"ph": "C", "name": name, "pid": pid, "ts": _us(time_s), "args": args}
            last = value


def _asleep(schedule: Schedule) -> Iterable[tuple[float, float]]:
    if not schedule.sleeps:
        return ()
    ends = [time_s for _, *both in schedule.sleeps for time_s in both]
    changes = np.array([0.0, *[1.0, -1.0] * len(schedule.sleeps)])
    return zip(*steps(np.array([0.0, *ends]), changes), strict=True)


def _given(series: StepSeries | None, end_s: float) -> Iterable[tuple[float, float]]:
    """Return the steps of a series that begin before `end_s`."""
    told = () if series is None else zip(series.times_s, series.values, strict=True)
    return ((time_s, value) for time_s, value in told if time_s < end_s)
