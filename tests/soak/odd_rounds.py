"""Rounds that no generator of instances would make: each limit and kind of job at its extremes."""

from functools import partial

import numpy as np
from msgspec.structs import replace

import ronda
from limited_rounds import limited_round
from ronda.instances import generate
from ronda.instances.job import Costs
from ronda.instances.rules.validate import validate
from ronda.testing import searching, sharing, without

WEIGHTS = (1.0, 1.0, 1.0, 2.0, 50.0, 1e-9, 1e-3, 1e6, 1e9)
CAPS_W = (0.0, 5e-324, 1e-3, 50.0, 1e6, 1e305)


def odd_round(seed):
    """Return a valid round, or None if what was drawn is none."""
    rng = np.random.default_rng([seed, 31])
    base = _base(rng, seed)
    try:
        return validate(_limits(rng, _nodes(rng, _jobs(rng, base))))
    except ronda.InputError:
        return None


def _base(rng, seed):
    """Return arrays, a sweep, or a round of a generator: tiny, limited, wide, of many kinds."""
    structure = partial(
        generate.Structure,
        types=int(rng.integers(1, 4)),
        partitions=int(rng.choice([1, 1, 2])),
        pods=int(rng.choice([1, 1, 2])),
        racks=int(rng.choice([1, 1, 2])),
        deadlines=float(rng.choice([0.0, 0.5, 1.0])),
        gangs=float(rng.choice([0.0, 0.0, 0.3, 0.8])),
        restart_s=float(rng.choice([0.0, 30.0, 3600.0])),
        error=float(rng.choice([0.0, 1.0, 2.0])),
    )
    kind = rng.random()
    if kind < 0.12:
        return rng.choice(list(sharing().values()))
    if kind < 0.18:
        return searching()
    if kind < 0.45:
        return generate.tiny_round(seed)
    if kind < 0.7:
        return limited_round(seed)
    gpus = None if kind < 0.85 else int(rng.choice([24, 32, 48]))
    severity = str(rng.choice(["loose", "balanced", "tight"]))
    try:
        return generate.round(int(rng.integers(2, 14)), gpus, severity, seed, structure())
    except ronda.InputError:
        return generate.tiny_round(seed)


def _jobs(rng, round_):
    """Return the round with odd weights, deadlines, sizes, costs, and jobs that must go on."""
    weights = WEIGHTS if rng.random() < 0.4 else (1.0,)
    firm, odd = rng.choice([0.0, 0.3, 1.0]), rng.random() < 0.3
    together = {s.allocation.array for s in round_.running} - {None}

    def changed(state):
        job = state.job
        if not together:
            job = replace(job, preemptible=bool(rng.random() >= firm))
        job = replace(job, weight=float(rng.choice(weights)))
        if odd and rng.random() < 0.3:
            job = replace(job, deadline_s=float(rng.choice([0.0, 1.0, round_.now_s + 1, 1e9])))
        if odd and rng.random() < 0.2 and job.estimate is not None:
            work = float(job.estimate.work * rng.choice([1e-9, 1e-3, 1e3, 1e9]))
            job = replace(job, estimate=replace(job.estimate, work=work, sd=0.0, quantiles=()))
        if odd and rng.random() < 0.1 and job.sweep is None:
            job = replace(job, estimate=None)
        if odd and rng.random() < 0.1 and state.allocation is None:
            job = replace(job, gpus=int(rng.choice([3, 5, 7, 64])), min_gpus=None, max_gpus=None)
        if odd and rng.random() < 0.1 and state.allocation is None and job.max_gpus:
            job = replace(job, min_gpus=min(int(rng.choice([1, 3, 5])), job.max_gpus))
        if odd and rng.random() < 0.1:
            job = replace(job, costs=Costs(start_s=1e4, restart_s=float(rng.choice([0.0, 1e5]))))
        return replace(state, job=job)

    return replace(
        round_,
        running=tuple(map(changed, round_.running)),
        waiting=tuple(map(changed, round_.waiting)),
        length_s=float(rng.choice([round_.length_s, 1.0, 86_400.0])),
    )


def _nodes(rng, round_):
    """Return the round with nodes that sleep, wake, or are out of service, in part or whole."""
    topology = round_.cluster.topology
    count = len(topology.node_gpus)
    used = {n for s in round_.running for n, _ in s.allocation.placement}
    if not round_.asleep and not round_.waking and rng.random() < 0.35:
        wake_s, share = float(rng.choice([0.0, 60.0, 1e4])), float(rng.choice([0.0, 1.0, 20.0]))
        groups = tuple(
            replace(g, sleep_w=0.1 * g.host_idle_w, wake_s=wake_s, wake_w=share * g.host_idle_w)
            for g in round_.cluster.node_groups
        )
        free = [n for n in range(count) if n not in used]
        drawn = rng.random(len(free))
        own, later = rng.choice([0.3, 0.6, 1.0]), rng.choice([0.0, 0.1])
        asleep = tuple(n for n, u in zip(free, drawn, strict=True) if u < own - later)
        waking = tuple(n for n, u in zip(free, drawn, strict=True) if own - later <= u < own)
        cluster = replace(round_.cluster, node_groups=groups)
        round_ = replace(round_, cluster=cluster, asleep=asleep, waking=waking)
    if not round_.cluster.out and rng.random() < 0.2:
        several = rng.choice(count, int(rng.integers(1, count + 1)), replace=False).tolist()
        awake = [n for n in several if n not in {*round_.asleep, *round_.waking}]
        gone = {n: int(rng.integers(1, topology.node_gpus[n] + 1)) for n in awake}
        if gone:
            round_ = without(round_, gone)
    return round_


def _limits(rng, round_):
    """Return the round with limits on power, energy and racks, from nothing to everything."""
    if rng.random() < 0.3:
        round_ = replace(round_, power_cap_w=None, energy_j=None, banked_j=None, sustained_w=None)
    t = round_.cluster.topology
    least_w, most_w = float(t.sleep_w.sum()), t.idle_w + 500.0 * round_.cluster.gpus
    if rng.random() < 0.35:
        cap_w = float(rng.choice(CAPS_W) if rng.random() < 0.4 else rng.uniform(least_w, most_w))
        round_ = replace(round_, power_cap_w=cap_w)
    if rng.random() < 0.25:
        mean_w, window_s = (
            float(rng.uniform(least_w, most_w)),
            float(rng.choice([1.0, 60.0, 3600.0])),
        )
        energy_j = mean_w * window_s
        banked = rng.choice([None, 0.0, 0.1, 0.9, 1.0])
        round_ = replace(
            round_,
            energy_j=energy_j,
            window_s=window_s,
            banked_j=None if banked is None else banked * energy_j,
            sustained_w=None if rng.random() < 0.5 else mean_w * float(rng.choice([0.5, 1.0, 2.0])),
        )
    racks = round_.cluster.racks
    if racks and rng.random() < 0.3:
        name = racks[int(rng.integers(len(racks)))].name
        cap_w = max(1e-3, float(rng.uniform(0.3, 1.0) * most_w / len(racks)))
        racks = tuple(replace(r, power_cap_w=cap_w) if r.name == name else r for r in racks)
        round_ = replace(round_, cluster=replace(round_.cluster, racks=racks))
    return round_
