"""A run in few bytes: what it was of, its bars, use, rounds and forecasts, as columns."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ronda.instances.arrays import Floats
from ronda.instances.instance import Instance
from ronda.instances.outcome.held_gpus import seats
from ronda.instances.outcome.usage import Usage, queue_of, usage_of
from ronda.instances.plan import gap_between
from ronda.instances.schedule import RoundRecord, Schedule, Segment

STEPS = 2000
"""Steps of a series that are kept; of a longer one means over as many equal stretches."""

FATES = {
    "failed": "failed",
    "discarded": "given up",
    "unfinished": "unfinished",
    "completed": "complete",
}
"""How the page says how a job ended."""

Packed = dict[str, Any]
"""What the page's script unpacks."""


def workload_of(instance: Instance) -> Packed:
    """Return what runs of an instance share: its nodes, its jobs and its limits."""
    groups = [g for g in instance.cluster.node_groups for _ in range(g.count)]
    cap, energy = instance.budget.power_cap_w, instance.budget.energy
    faults = instance.faults.outages
    return {
        "nodes": [f"{k} · {group.name}" for k, group in enumerate(groups)],
        "gpus": [group.gpus_per_node for group in groups],
        "types": [group.gpu_type for group in groups],
        "jobs": [job.id for job in instance.jobs],
        "submit": ticks((job.submit_s for job in instance.jobs), 0.1),
        "asked": [job.gpus for job in instance.jobs],
        "application": coded(job.profile for job in instance.jobs),
        "tenant": coded(job.partition for job in instance.jobs),
        "user": coded(job.user or "" for job in instance.jobs),
        "name": coded(job.name or "" for job in instance.jobs),
        "deadline": [job.deadline_s for job in instance.jobs],
        "cap": None if cap is None else [cap.times_s, cap.values],
        "sustained_w": None if energy is None else energy.sustained_w,
        "idle_w": instance.cluster.topology.idle_w,
        "outages": [[out.node, out.start_s, out.end_s] for out in faults],
    }


def run_of(instance: Instance, schedule: Schedule) -> Packed:
    """Return a run; times are ticks from one to the next, floats have five digits."""
    tick_s = float(10.0 ** np.floor(np.log10(max(schedule.end_s, 1.0)) - 5.0))
    numbers = {id(s): k for k, s in enumerate(s for o in schedule.jobs for s in o.segments)}
    held = [(k, s) for k, outcome in enumerate(schedule.jobs) for s in outcome.segments]
    drawn = [
        (numbers[id(seat.segment)], seat.node, int(lanes[0]), len(lanes))
        for seat in seats(instance.cluster, schedule)
        for lanes in np.split(seat.gpus, np.flatnonzero(np.diff(seat.gpus) > 1) + 1)
        if len(lanes)
    ]
    use = usage_of(instance, schedule)
    return {
        "end_s": schedule.end_s,
        "ends": [fine(outcome.end_s) for outcome in schedule.jobs],
        "fate": [FATES[outcome.state] for outcome in schedule.jobs],
        "segments": _segments(held, tick_s),
        "bars": {
            name: [bar[k] for bar in drawn]
            for k, name in enumerate(("segment", "node", "lane", "lanes"))
        },
        "sleeps": [[node, fine(start), fine(end)] for node, start, end in schedule.sleeps],
        "failures": [[fine(f.time_s), f.job, f.node, fine(f.lost_s)] for f in schedule.failures],
        "use": [
            _series(time_s, values, schedule.end_s, tick_s)
            for time_s, values in ((use.time_s, use.gpus), queue_of(schedule), _watts(use))
        ],
        "rounds": _rounds(schedule.rounds, tick_s),
        "beliefs": _beliefs(instance, schedule, tick_s),
    }


def ticks(times: Iterable[float], tick: float) -> Packed:
    """Return times as whole numbers of ticks, each less the one before."""
    whole = np.rint(np.fromiter(times, dtype=float) / tick).astype(int)
    return {"tick": tick, "by": np.diff(whole, prepend=0).tolist()}


def coded(words: Iterable[str]) -> Packed:
    """Return words as the different ones and places among these."""
    every = list(words)
    known = {word: k for k, word in enumerate(dict.fromkeys(every))}
    return {"words": list(known), "at": [known[word] for word in every]}


def fine(value: float | None, digits: int = 8) -> float | None:
    """Return a number with so many digits; None if there is none or it is not finite."""
    return None if value is None or not np.isfinite(value) else float(f"{value:.{digits}g}")


def floats(values: Iterable[float | None]) -> list[float | None]:
    """Return numbers with five digits."""
    return [fine(value, 5) for value in values]


def thinned(
    time_s: Floats, values: Floats, end_s: float, most: int = STEPS
) -> tuple[Floats, Floats]:
    """Return a step series (T,) with at most so many steps: means over equal stretches."""
    if len(time_s) <= most:
        return time_s, values
    area = np.append(0.0, np.cumsum(values * np.diff(np.append(time_s, end_s))))
    edges = np.linspace(0.0, end_s, most + 1)
    return edges[:-1], np.diff(np.interp(edges, np.append(time_s, end_s), area)) * most / end_s


def _segments(held: Sequence[tuple[int, Segment]], tick_s: float) -> Packed:
    def column(values: Iterable[float]) -> Packed:
        return ticks(values, tick_s)

    alone = [s.array is None for _, s in held]
    names = [s.array or "" for _, s in held]
    return {
        "job": [job for job, _ in held],
        "start": column(s.start_s for _, s in held),
        "resume": column(s.resume_s for _, s in held),
        "end": column(s.end_s for _, s in held),
        "gpus": [s.option.gpus for _, s in held],
        "clock": floats(s.option.clock for _, s in held),
        "batch": floats(s.option.batch for _, s in held),
        "power": floats(s.option.power_w for _, s in held),
        "array": None if all(alone) else coded(names),
    }


def _watts(use: Usage) -> tuple[Floats, Floats]:
    return (use.time_s, use.watts) if use.watts.any() else (np.zeros(0), np.zeros(0))


def _series(time_s: Floats, values: Floats, end_s: float, tick_s: float) -> Packed:
    short_s, few = thinned(time_s, values, end_s)
    most = float(values.max()) if len(values) else 0.0
    return {
        "time": ticks(short_s, tick_s),
        "value": floats(few),
        "most": most,
        "means_s": end_s / STEPS if len(few) < len(values) else 0.0,
    }


def _rounds(records: Sequence[RoundRecord], tick_s: float) -> Packed:
    names: dict[str, int] = {}
    prices = [
        [x for n, v in r.prices.items() for x in (names.setdefault(n, len(names)), fine(v, 4))]
        for r in records
    ]
    more = {
        k: {name: list(value) for name in _SPARSE if (value := getattr(record, name))}
        for k, record in enumerate(records)
        if any(getattr(record, name) for name in _SPARSE)
    }
    counts = {name: [getattr(r, name) for r in records] for name in _COUNTS}
    return counts | {
        "now": ticks((r.now_s for r in records), tick_s),
        "objective": floats(r.objective for r in records),
        "bound": floats(r.bound for r in records),
        "gap": [_gap(r) for r in records],
        "stop": coded(str(r.stop) for r in records),
        "status": coded(str(r.status) for r in records),
        "solve": floats(r.solve_s for r in records),
        "overhead": floats(r.overhead_s for r in records),
        "overrun": [k for k, r in enumerate(records) if r.overrun],
        "power": floats(r.power_w for r in records),
        "resources": list(names),
        "prices": prices,
        "more": more,
    }


_COUNTS = ("waiting", "running", "started", "stopped", "changed")
_SPARSE = ("violations", "slowed_jobs", "stopped_jobs", "restored_jobs", "pinned_jobs")


def _gap(record: RoundRecord) -> float | None:
    if record.objective is None or record.bound is None:
        return None
    return fine(gap_between(record.bound, record.objective), 3)


def _beliefs(instance: Instance, schedule: Schedule, tick_s: float) -> Packed | None:
    if not schedule.forecasts:
        return None
    place = {job.id: k for k, job in enumerate(instance.jobs)}
    told = schedule.forecasts
    return {
        "size": [each.what == "size" for each in told],
        "time": ticks((each.time_s for each in told), tick_s),
        "job": [place[each.job] for each in told],
        "believed": floats(each.believed for each in told),
        "real": floats(each.real for each in told),
        "share": floats(each.share for each in told),
    }
