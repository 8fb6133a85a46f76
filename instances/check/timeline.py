"""Check of what a schedule's jobs do to the cluster together: GPUs, sleep, power, energy.

All of it is swept over sorted events with numpy: 100,000 jobs take about a second.
"""

from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ronda.instances.arrays import Floats, Ints
from ronda.instances.check.budget import (
    cap_violations,
    energy_violations,
    first_above,
    price_violations,
)
from ronda.instances.check.plan import capped_racks
from ronda.instances.cluster import Cluster, Topology
from ronda.instances.instance import Instance
from ronda.instances.schedule import Energy, Schedule
from ronda.instances.violation import ACCOUNTING, Violation

SLEEPS = 1 << 40
"""What a sleep counts in the sum of the GPUs in use on a node: more than any node has GPUs."""


@dataclass(frozen=True, slots=True)
class Flat:
    """All S segments, P pairs of their placements and Z sleeps of a schedule as parallel arrays."""

    start_s: Floats
    resume_s: Floats
    end_s: Floats
    power_w: Floats
    gpus: Floats
    segment: Ints
    node: Ints
    count: Ints
    sleeper: Ints
    sleep_start_s: Floats
    sleep_end_s: Floats


def flatten(schedule: Schedule) -> Flat:
    """Return a schedule's segments and sleeps as arrays."""
    segments = [segment for outcome in schedule.jobs for segment in outcome.segments]
    sizes = [len(segment.placement) for segment in segments]
    pairs = np.fromiter(
        chain.from_iterable(chain.from_iterable(s.placement for s in segments)), dtype=np.int64
    ).reshape(-1, 2)
    sleeps = np.array(schedule.sleeps, dtype=float).reshape(-1, 3)
    return Flat(
        start_s=np.array([s.start_s for s in segments], dtype=float),
        resume_s=np.array([s.resume_s for s in segments], dtype=float),
        end_s=np.array([s.end_s for s in segments], dtype=float),
        power_w=np.array([s.option.power_w for s in segments], dtype=float),
        gpus=np.array([s.option.gpus for s in segments], dtype=float),
        segment=np.repeat(np.arange(len(segments)), sizes),
        node=pairs[:, 0],
        count=pairs[:, 1],
        sleeper=sleeps[:, 0].astype(np.int64),
        sleep_start_s=sleeps[:, 1],
        sleep_end_s=sleeps[:, 2],
    )


def timeline_violations(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return what the jobs break together; their own histories have been found in order."""
    flat, topology = flatten(schedule), instance.cluster.topology
    found = _sleep_violations(schedule, len(topology.node_gpus))
    if found:
        return found
    found += _node_violations(flat, topology)
    everything = np.ones(len(topology.node_gpus), dtype=bool)
    times, power = power_steps(flat, topology, everything, schedule.end_s)
    found += cap_violations(instance, times, power, schedule.end_s)
    found += energy_violations(instance, times, power, schedule.end_s)
    found += _rack_violations(instance.cluster, flat, schedule.end_s)
    found += price_violations(instance, schedule, times, power)
    return found + _accounting_violations(schedule, energy(flat, topology, schedule.end_s))


def _sleep_violations(schedule: Schedule, nodes: int) -> list[Violation]:
    """Return the sleeps of nodes that do not exist or at times that cannot be."""
    found = []
    for node, start_s, end_s in schedule.sleeps:
        if not 0 <= node < nodes:
            found.append(Violation("node", "sleeps", f"there is no node {node}"))
        elif not 0 <= start_s <= end_s <= schedule.end_s:
            message = f"sleeps from {start_s:g} to {end_s:g} s of {schedule.end_s:g} s"
            found.append(Violation("sleep", f"node {node}", message))
    return found


def _node_violations(flat: Flat, topology: Topology) -> list[Violation]:
    """Return each node's first time with too many GPUs in use, in use asleep, or asleep twice."""
    held = flat.end_s[flat.segment] > flat.start_s[flat.segment]
    segment, one = flat.segment[held], np.ones_like(flat.sleeper)
    node = np.concatenate((flat.node[held], flat.node[held], flat.sleeper, flat.sleeper))
    time = np.concatenate(
        (flat.start_s[segment], flat.end_s[segment], flat.sleep_start_s, flat.sleep_end_s)
    )
    change = np.concatenate((flat.count[held], -flat.count[held], SLEEPS * one, -SLEEPS * one))
    order = np.lexsort((time, node))
    node, time, load = node[order], time[order], np.cumsum(change[order])
    # A node's changes add up to nothing, so the sum starts again with each node. What holds from
    # a time on is the sum after all changes of that time.
    last = np.append((node[1:] != node[:-1]) | (time[1:] != time[:-1]), True)[: len(node)]
    node, time, load = node[last], time[last], load[last]
    used, asleep = load % SLEEPS, load // SLEEPS
    gpus = topology.node_gpus[node]
    found = []
    for code, bad, what in (
        ("capacity", used > gpus, "more GPUs in use than it has"),
        ("asleep", (used > 0) & (asleep > 0), "in use while it sleeps"),
        ("sleep", asleep > 1, "falls asleep while it sleeps"),
    ):
        for k in np.unique(node[bad], return_index=True)[1].tolist():
            first = int(np.flatnonzero(bad)[k])
            message = f"{what} from {time[first]:.9g} s ({used[first]} of {gpus[first]} GPUs)"
            found.append(Violation(code, f"node {node[first]}", message))
    return found


def power_steps(
    flat: Flat, topology: Topology, mask: NDArray[np.bool_], end_s: float
) -> tuple[Floats, Floats]:
    """Return the power of some nodes as a step function: (T,) times from 0, (T,) watts from each.

    The (N,) `mask` tells the nodes to count; a job's power is spread evenly over its GPUs. Changes
    from `end_s` on are left out. A node that was woken draws its ``wake_w`` on top until it is
    awake.
    """
    idle_w = topology.host_idle_w + topology.node_gpus * topology.gpu_idle_w
    each_w = flat.power_w / flat.gpus
    gained = flat.count * (each_w[flat.segment] - topology.gpu_idle_w[flat.node])
    extra = np.bincount(flat.segment, weights=gained * mask[flat.node], minlength=len(flat.start_s))
    saved = ((topology.sleep_w - idle_w) * mask)[flat.sleeper]
    woken_s = flat.sleep_end_s
    waking = (topology.wake_w * mask)[flat.sleeper]
    time = np.concatenate(
        (
            [0.0],
            flat.resume_s,
            flat.end_s,
            flat.sleep_start_s,
            woken_s,
            woken_s,
            awake_s(flat, topology),
        )
    )
    change = np.concatenate(
        ([float(idle_w[mask].sum())], extra, -extra, saved, -saved, waking, -waking)
    )
    order = np.argsort(time, kind="stable")
    time, power = time[order], np.cumsum(change[order])
    last = np.append(time[1:] != time[:-1], True)
    kept = last & ((time < end_s) | (time == 0))
    return time[kept], power[kept]


def awake_s(flat: Flat, topology: Topology) -> Floats:
    """Return (Z,) when the node of each sleep is awake after it, or falls asleep again."""
    ready = flat.sleep_end_s + topology.wake_s[flat.sleeper]
    order = np.lexsort((flat.sleep_start_s, flat.sleeper))
    here, after = order[:-1], order[1:]
    again = flat.sleeper[here] == flat.sleeper[after]
    ready[here[again]] = np.minimum(ready[here[again]], flat.sleep_start_s[after[again]])
    return ready


def _rack_violations(cluster: Cluster, flat: Flat, end_s: float) -> list[Violation]:
    """Return each rack's first time above its cap."""
    found = []
    for rack, cap_w, mask in capped_racks(cluster):
        times, power = power_steps(flat, cluster.topology, mask, end_s)
        limits = np.full_like(power, cap_w)
        found += first_above("rack-power", f"rack {rack}", times, power, limits, "W")
    return found


def energy(flat: Flat, topology: Topology, end_s: float) -> Energy:
    """Return the energy of a schedule by where it went, from 0 to `end_s`, when all has ended."""
    idle_w = np.bincount(
        flat.segment,
        weights=flat.count * topology.gpu_idle_w[flat.node],
        minlength=len(flat.start_s),
    )
    up_s = end_s - np.bincount(
        flat.sleeper,
        weights=flat.sleep_end_s - flat.sleep_start_s,
        minlength=len(topology.node_gpus),
    )
    waking_s = np.minimum(awake_s(flat, topology), end_s) - flat.sleep_end_s
    all_gpus_j = (topology.node_gpus * topology.gpu_idle_w) @ up_s
    return Energy(
        busy_j=float(flat.power_w @ (flat.end_s - flat.resume_s)),
        paused_j=float(idle_w @ (flat.resume_s - flat.start_s)),
        idle_gpu_j=float(all_gpus_j - idle_w @ (flat.end_s - flat.start_s)),
        host_j=float(topology.host_idle_w @ up_s),
        sleep_j=float(topology.sleep_w @ (end_s - up_s)),
        wake_j=float(topology.wake_w[flat.sleeper] @ waking_s),
    )


def _accounting_violations(schedule: Schedule, expected: Energy) -> list[Violation]:
    """Compare the energy that a schedule claims, part by part."""
    found = []
    slack = ACCOUNTING * max(abs(expected.total_j), abs(schedule.energy.total_j))
    for part in Energy.__struct_fields__:
        claimed, exact = getattr(schedule.energy, part), getattr(expected, part)
        if not abs(claimed - exact) <= slack:
            message = f"claims {claimed:.12g} J, not {exact:.12g} J"
            found.append(Violation("accounting", part, message))
    return found
