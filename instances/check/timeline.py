"""The check of all jobs of a schedule together: GPUs, sleep, power, energy.

NumPy sweeps over sorted events, so that a check of 100,000 jobs takes about a second.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, pairwise

import numpy as np
from numpy.typing import NDArray

from ronda.instances.base import Floats, Ints
from ronda.instances.budget import EnergyBudget, StepSeries
from ronda.instances.check.faults import off_times
from ronda.instances.check.plan import capped_racks
from ronda.instances.check.sharing import place_of
from ronda.instances.cluster import Cluster, Topology
from ronda.instances.instance import Faults, Instance
from ronda.instances.job import Option
from ronda.instances.schedule import Energy, Schedule, Segment
from ronda.instances.violation import ACCOUNTING, RELATIVE, Violation

SLEEPS, OFFS = 1 << 40, 1 << 50
"""The weights of a sleep and of an off period in the sum of a node's GPUs in use."""


@dataclass(frozen=True, slots=True)
class Flat:
    """All S segments, P placement pairs and Z rests of a schedule as parallel arrays.

    `power_w` are the true watts of a segment. `limited_w` are the watts that are compared with
    limits; they do not exceed the profile's watts, as no plan can know better. Each member of an
    array, and each job on a part of a GPU, bears 1/`width` of its GPU's watts. The GPU comes into
    use when the first of them `comes`, and is free when the last one `goes`. A rest of a node is a
    sleep or, if `off`, a period out of service.
    """

    start_s: Floats
    resume_s: Floats
    end_s: Floats
    power_w: Floats
    limited_w: Floats
    gpus: Floats
    width: Floats
    segment: Ints
    node: Ints
    count: Ints
    comes: NDArray[np.bool_]
    goes: NDArray[np.bool_]
    sleeper: Ints
    sleep_start_s: Floats
    sleep_end_s: Floats
    off: NDArray[np.bool_]

    def changes(self, among: NDArray[np.bool_]) -> tuple[Ints, Floats, Ints]:
        """Return nodes, times and changes of the GPUs in use by some placements (P,)."""
        among = among & (self.end_s[self.segment] > self.start_s[self.segment])
        comes, goes = among & self.comes, among & self.goes
        return (
            np.concatenate((self.node[comes], self.node[goes])),
            np.concatenate((self.start_s[self.segment[comes]], self.end_s[self.segment[goes]])),
            np.concatenate((self.count[comes], -self.count[goes])),
        )

    @property
    def share(self) -> Floats:
        """The number of GPUs whose watts each placement bears, shape (P,)."""
        return np.asarray(self.count / self.width[self.segment])


def flatten(instance: Instance, schedule: Schedule) -> Flat:
    """Return the segments and sleeps of a schedule as arrays, without off periods."""
    hot = {j.id: j.truth.power for j in instance.jobs if j.truth and j.truth.power != 1.0}
    power = [hot.get(outcome.id, 1.0) for outcome in schedule.jobs for _ in outcome.segments]
    segments = [segment for outcome in schedule.jobs for segment in outcome.segments]
    sizes = [len(segment.placement) for segment in segments]
    pairs = np.fromiter(
        chain.from_iterable(chain.from_iterable(s.placement for s in segments)), dtype=np.int64
    ).reshape(-1, 2)
    sleeps = np.array(schedule.sleeps, dtype=float).reshape(-1, 3)
    claimed_w = np.array([s.option.power_w for s in segments], dtype=float)
    comes, goes = _first_and_last(segments)
    return Flat(
        start_s=np.array([s.start_s for s in segments], dtype=float),
        resume_s=np.array([s.resume_s for s in segments], dtype=float),
        end_s=np.array([s.end_s for s in segments], dtype=float),
        power_w=claimed_w * np.array(power, dtype=float),
        limited_w=claimed_w * np.minimum(1.0, np.array(power, dtype=float)),
        gpus=np.array([s.option.gpus for s in segments], dtype=float),
        width=np.array([_jobs_on_gpu(s.option) for s in segments], dtype=float),
        segment=np.repeat(np.arange(len(segments)), sizes),
        node=pairs[:, 0],
        count=pairs[:, 1],
        comes=np.repeat(comes, sizes),
        goes=np.repeat(goes, sizes),
        sleeper=sleeps[:, 0].astype(np.int64),
        sleep_start_s=sleeps[:, 1],
        sleep_end_s=sleeps[:, 2],
        off=np.zeros(len(sleeps), dtype=bool),
    )


def _jobs_on_gpu(option: Option) -> float:
    return option.width if option.share is None else 1.0 / option.share


def _first_and_last(segments: list[Segment]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether GPUs come into use with each segment, and are free after it.

    The jobs of an array begin and end together, and count once. Jobs on parts of a GPU come and go;
    it is in use from the first to the last of those that overlap.
    """
    seen: set[tuple[object, ...]] = set()
    on: defaultdict[object, list[int]] = defaultdict(list)
    comes = np.ones(len(segments), dtype=bool)
    for k, segment in enumerate(segments):
        if segment.parts:
            on[place_of(segment)].append(k)
        elif segment.array is not None:
            key = *place_of(segment), segment.start_s, segment.end_s
            comes[k] = key not in seen
            seen.add(key)
    goes = comes.copy()
    for own in on.values():
        comes[own] = goes[own] = False
        last: int | None = None
        for k in sorted(own, key=lambda k: segments[k].start_s):
            if segments[k].end_s <= segments[k].start_s:
                continue
            if last is None or segments[k].start_s >= segments[last].end_s:
                comes[k] = goes[k] = True
                last = k
            elif segments[k].end_s > segments[last].end_s:
                goes[last], goes[k] = False, True
                last = k
    return comes, goes


def with_off_times(flat: Flat, faults: Faults, end_s: float) -> tuple[Flat, list[Violation]]:
    """Return the arrays with off periods added to the rests, and the violations of drains."""
    if not faults.outages:
        return flat, []
    off, found = off_times(faults, _use(flat, {o.node for o in faults.outages}), end_s)
    both = replace(
        flat,
        sleeper=np.append(flat.sleeper, off.node),
        sleep_start_s=np.append(flat.sleep_start_s, off.start_s),
        sleep_end_s=np.append(flat.sleep_end_s, off.end_s),
        off=np.append(flat.off, np.ones(len(off.node), dtype=bool)),
    )
    return both, found


def _use(flat: Flat, nodes: set[int]) -> dict[int, list[tuple[float, int]]]:
    """Return pairs (time, GPUs in use from then on) of some nodes."""
    found = {}
    for node in nodes:
        change: defaultdict[float, int] = defaultdict(int)
        _, when_s, more = flat.changes(flat.node == node)
        for time_s, gpus in zip(when_s.tolist(), more.tolist(), strict=True):
            change[time_s] += gpus
        times = sorted(change)
        found[node] = list(zip(times, accumulate(change[t] for t in times), strict=True))
    return found


def timeline_violations(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the violations by all jobs together, given that each job's history is valid."""
    flat, topology = flatten(instance, schedule), instance.cluster.topology
    found = _sleep_violations(schedule, len(topology.node_gpus))
    if found:
        return found
    flat, found = with_off_times(flat, instance.faults, schedule.end_s)
    found += _node_violations(flat, topology)
    everything = np.ones(len(topology.node_gpus), dtype=bool)
    limited = replace(flat, power_w=flat.limited_w)
    times, power = power_steps(limited, topology, everything, schedule.end_s)
    borne_w = partial(_borne_w, instance, schedule, limited)
    found += cap_violations(instance, times, power, schedule.end_s, borne_w)
    found += energy_violations(instance, times, power, schedule.end_s, borne_w)
    found += _rack_violations(instance.cluster, limited, schedule.end_s)
    times, power = power_steps(flat, topology, everything, schedule.end_s)
    found += price_violations(instance, schedule, times, power)
    return found + _accounting_violations(schedule, energy(flat, topology, schedule.end_s))


def _sleep_violations(schedule: Schedule, nodes: int) -> list[Violation]:
    found = []
    for node, start_s, end_s in schedule.sleeps:
        if not 0 <= node < nodes:
            found.append(Violation("node", "sleeps", f"there is no node {node}"))
        elif not 0 <= start_s <= end_s <= schedule.end_s:
            message = f"sleeps from {start_s:g} to {end_s:g} s of {schedule.end_s:g} s"
            found.append(Violation("sleep", f"node {node}", message))
    return found


def _node_violations(flat: Flat, topology: Topology) -> list[Violation]:
    """Return each node's first violation: too many GPUs, use at rest, or overlapping rests."""
    rests = np.where(flat.off, OFFS, SLEEPS)
    node, time, change = flat.changes(np.ones(len(flat.node), dtype=bool))
    node = np.concatenate((node, flat.sleeper, flat.sleeper))
    time = np.concatenate((time, flat.sleep_start_s, flat.sleep_end_s))
    change = np.concatenate((change, rests, -rests))
    order = np.lexsort((time, node))
    node, time, load = node[order], time[order], np.cumsum(change[order])
    # A node's changes add up to 0, so the sum restarts with each node. The value that holds from
    # a time on is the sum after all changes of that time.
    last = np.append((node[1:] != node[:-1]) | (time[1:] != time[:-1]), True)[: len(node)]
    node, time, load = node[last], time[last], load[last]
    used, asleep, off = load % SLEEPS, load % OFFS // SLEEPS, load // OFFS
    gpus = topology.node_gpus[node]
    found = []
    for code, bad, what in (
        ("capacity", used > gpus, "more GPUs in use than it has"),
        ("asleep", (used > 0) & (asleep > 0), "in use while it sleeps"),
        ("out", (used > 0) & (off > 0), "in use while it is out of service"),
        ("sleep", asleep + off > 1, "falls asleep while it sleeps, or is out of service"),
    ):
        for k in np.unique(node[bad], return_index=True)[1].tolist():
            first = int(np.flatnonzero(bad)[k])
            message = f"{what} from {time[first]:.9g} s ({used[first]} of {gpus[first]} GPUs)"
            found.append(Violation(code, f"node {node[first]}", message))
    return found


def power_steps(
    flat: Flat, topology: Topology, mask: NDArray[np.bool_], end_s: float
) -> tuple[Floats, Floats]:
    """Return the power of some nodes as a step function: times from 0 and watts, shapes (T,).

    `mask` (N,) selects the nodes to count. The power of a job is spread evenly over its GPUs.
    Changes from `end_s` on are ignored. A woken node also draws its ``wake_w`` until it is awake.
    """
    idle_w = topology.host_idle_w + topology.node_gpus * topology.gpu_idle_w
    each_w = flat.power_w * flat.width / flat.gpus
    gained = flat.share * (each_w[flat.segment] - topology.gpu_idle_w[flat.node])
    extra = np.bincount(flat.segment, weights=gained * mask[flat.node], minlength=len(flat.start_s))
    rest_w = np.where(flat.off, 0.0, topology.sleep_w[flat.sleeper])
    saved = (rest_w - idle_w[flat.sleeper]) * mask[flat.sleeper]
    woken_s = flat.sleep_end_s
    waking = (topology.wake_w * mask)[flat.sleeper] * ~flat.off
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
    """Return the time at which each rest's node is awake or rests again, shape (Z,)."""
    ready = flat.sleep_end_s + topology.wake_s[flat.sleeper] * ~flat.off
    order = np.lexsort((flat.sleep_start_s, flat.sleeper))
    here, after = order[:-1], order[1:]
    again = flat.sleeper[here] == flat.sleeper[after]
    ready[here[again]] = np.minimum(ready[here[again]], flat.sleep_start_s[after[again]])
    return ready


def _rack_violations(cluster: Cluster, flat: Flat, end_s: float) -> list[Violation]:
    found = []
    for rack, cap_w, mask in capped_racks(cluster):
        times, power = power_steps(flat, cluster.topology, mask, end_s)
        limits = np.full_like(power, cap_w)
        found += first_above("rack-power", f"rack {rack}", times, power, limits, "W")
    return found


def energy(flat: Flat, topology: Topology, end_s: float) -> Energy:
    """Return the energy of a schedule per use, from 0 to `end_s`."""
    idle_w = np.bincount(
        flat.segment,
        weights=flat.share * topology.gpu_idle_w[flat.node],
        minlength=len(flat.start_s),
    )
    rest_s, nodes = flat.sleep_end_s - flat.sleep_start_s, len(topology.node_gpus)
    slept_s = np.bincount(flat.sleeper, weights=rest_s * ~flat.off, minlength=nodes)
    up_s = end_s - np.bincount(flat.sleeper, weights=rest_s, minlength=nodes)
    waking_s = np.minimum(awake_s(flat, topology), end_s) - flat.sleep_end_s
    all_gpus_j = (topology.node_gpus * topology.gpu_idle_w) @ up_s
    return Energy(
        busy_j=float(flat.power_w @ (flat.end_s - flat.resume_s)),
        paused_j=float(idle_w @ (flat.resume_s - flat.start_s)),
        idle_gpu_j=float(all_gpus_j - idle_w @ (flat.end_s - flat.start_s)),
        host_j=float(topology.host_idle_w @ up_s),
        sleep_j=float(topology.sleep_w @ slept_s),
        wake_j=float(topology.wake_w[flat.sleeper] @ (waking_s * ~flat.off)),
    )


def _accounting_violations(schedule: Schedule, expected: Energy) -> list[Violation]:
    """Compare the claimed parts of the energy of a schedule."""
    found = []
    slack = ACCOUNTING * max(abs(expected.total_j), abs(schedule.energy.total_j))
    for part in Energy.__struct_fields__:
        claimed, exact = getattr(schedule.energy, part), getattr(expected, part)
        if not abs(claimed - exact) <= slack:
            message = f"claims {claimed:.12g} J, not {exact:.12g} J"
            found.append(Violation("accounting", part, message))
    return found


Borne = Callable[[float, Floats], Floats]
"""A function from a time and moments to the watts of only the unstoppable jobs begun before it."""


def _borne_w(
    instance: Instance, schedule: Schedule, flat: Flat, since_s: float, moments: Floats
) -> Floats:
    """Return the watts at some moments as in `Borne`, with nodes asleep that are; 0 if none runs.

    The jobs counted are those that may not be stopped, the members of their arrays, and pinned
    jobs.
    """
    firm = {job.id for job in instance.jobs if not job.preemptible}
    firm.update(job for record in schedule.rounds for job in record.pinned_jobs)
    own = [(outcome.id in firm, each) for outcome in schedule.jobs for each in outcome.segments]
    arrays = {place_of(each) for stays, each in own if stays and each.array is not None}
    goes_on = np.array(
        [stays or (each.array is not None and place_of(each) in arrays) for stays, each in own],
        dtype=bool,
    )
    topology = instance.cluster.topology
    idle = flat.share * topology.gpu_idle_w[flat.node]
    idle_w = np.bincount(flat.segment, weights=idle, minlength=len(own))
    kept = goes_on & (flat.start_s < since_s)
    only = np.where(kept, flat.power_w, idle_w)
    every = np.ones(len(topology.node_gpus), dtype=bool)
    times, watts = power_steps(replace(flat, power_w=only), topology, every, schedule.end_s)
    began, ended = np.sort(flat.start_s[kept]), np.sort(flat.end_s[kept])
    some = np.searchsorted(began, moments, "right") > np.searchsorted(ended, moments, "right")
    return some * watts[np.searchsorted(times, moments, side="right") - 1]


def cap_violations(
    instance: Instance, times: Floats, power: Floats, end_s: float, borne_w: Borne
) -> list[Violation]:
    """Return the violation at the first time at which the power is avoidably above the cap.

    Jobs that may not be stopped continue if they ran when the cap fell.
    """
    cap = instance.budget.power_cap_w
    if cap is None:
        return []
    moments, watts = _refined(times, power, cap, end_s)
    limits = _held(cap, moments)
    above = watts > limits * (1 + RELATIVE)
    for since_s, until_s in pairwise((*cap.times_s, np.inf)) if above.any() else ():
        now = (since_s <= moments) & (moments < until_s)
        if above[now].any():
            limits[now] = np.maximum(limits[now], borne_w(since_s, moments[now]))
    return first_above("power", "cluster", moments, watts, limits, "W")


def energy_violations(
    instance: Instance, times: Floats, power: Floats, end_s: float, borne_w: Borne
) -> list[Violation]:
    """Return the violation at the first change of power or accrual with too much energy used.

    Use and accrual are linear in between, so that no other time can be worse. Jobs that may not be
    stopped continue if they ran when the budget was spent, and only they may overdraw it further.
    """
    budget = instance.budget.energy
    if budget is None:
        return []
    rate = _accrual(instance, budget)
    moments, watts = _refined(times, power, rate, end_s)
    seconds = np.diff(np.append(moments, end_s))
    used = np.append(0.0, np.cumsum(watts * seconds))
    accrued = np.append(0.0, np.cumsum(_held(rate, moments) * seconds)) + budget.credit_j
    if budget.pacing == "demand":
        accrued += budget.joules
    moments = np.append(moments, end_s)
    owed, spent = used - accrued, used > accrued * (1 + RELATIVE)
    for first in np.flatnonzero(np.diff(spent, prepend=False) & spent).tolist():
        own = np.arange(first, first + int(np.argmin(np.append(spent[first:], False))))
        borne = borne_w(moments[first], moments[own - 1])  # the power that holds from there on
        paid_back = owed[own] <= np.maximum(0.0, owed[own - 1])
        accrued[own[paid_back | (watts[own - 1] <= borne * (1 + RELATIVE))]] = np.inf
    return first_above("energy", "cluster", moments, used, accrued, "J")


def price_violations(
    instance: Instance, schedule: Schedule, times: Floats, power: Floats
) -> list[Violation]:
    """Compare the claimed cost and grams of a schedule with the integrals of its power."""
    found = []
    for name, series in (
        ("energy_cost", instance.budget.energy_price_per_j),
        ("carbon_g", instance.budget.carbon_g_per_j),
    ):
        claimed = getattr(schedule, name)
        if series is None:
            if claimed is not None:
                message = f"claims {claimed:.12g}, but the instance has no series for it"
                found.append(Violation("accounting", name, message))
            continue
        moments, watts = _refined(times, power, series, schedule.end_s)
        seconds = np.diff(np.append(moments, schedule.end_s))
        exact = float((watts * _held(series, moments)) @ seconds)
        if claimed is None or not abs(claimed - exact) <= ACCOUNTING * exact:
            message = f"claims {claimed}, not {exact:.12g}"
            found.append(Violation("accounting", name, message))
    return found


def first_above(
    code: str, where: str, times: Floats, values: Floats, limits: Floats, unit: str
) -> list[Violation]:
    """Return a violation at the first time at which a value is above its limit."""
    above = np.flatnonzero(~(values <= limits * (1 + RELATIVE)))
    if not above.size:
        return []
    k = above[0]
    message = f"{values[k]:.9g} {unit} of {limits[k]:.9g} {unit} at {times[k]:.9g} s"
    return [Violation(code, where, message)]


def _refined(
    times: Floats, power: Floats, series: StepSeries, end_s: float
) -> tuple[Floats, Floats]:
    changes = np.array(series.times_s)
    moments = np.union1d(times, changes[changes < end_s])
    return moments, power[np.searchsorted(times, moments, side="right") - 1]


def _held(series: StepSeries, moments: Floats) -> Floats:
    k = np.searchsorted(np.array(series.times_s), moments, side="right") - 1
    return np.array(series.values)[np.maximum(k, 0)]


def _accrual(instance: Instance, budget: EnergyBudget) -> StepSeries:
    """Return the watts at which the budget accrues; with "demand" it is available at once."""
    mean_w, end_s = budget.joules / budget.horizon_s, budget.horizon_s
    if budget.pacing == "even":
        return StepSeries(times_s=(0.0,), values=(mean_w,))
    if budget.pacing == "demand":
        return StepSeries(times_s=(0.0, end_s), values=(0.0, mean_w))
    followed = {
        "series": budget.accrual,
        "price": instance.budget.energy_price_per_j,
        "carbon": instance.budget.carbon_g_per_j,
    }[budget.pacing]
    assert followed is not None  # a valid instance has the series
    weight = [v if budget.pacing == "series" else 1 / v for v in followed.values]
    steps = [(t, w) for t, w in zip(followed.times_s, weight, strict=True) if t < end_s]
    ends = [*(t for t, _ in steps[1:]), end_s]
    whole = sum(w * (until - t) for (t, w), until in zip(steps, ends, strict=True))
    watts = [budget.joules * w / whole for _, w in steps]
    return StepSeries(times_s=(*(t for t, _ in steps), end_s), values=(*watts, mean_w))
