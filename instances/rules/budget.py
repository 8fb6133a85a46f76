"""Rules for power caps and energy budgets: shapes, and room for idle nodes and each job."""

from collections.abc import Iterable, Iterator, Mapping
from math import inf

import numpy as np
from numpy.typing import NDArray

from ronda.instances.budget import Budget, StepSeries
from ronda.instances.cluster import Cluster
from ronda.instances.job import Job
from ronda.instances.models.power import least_power_w
from ronda.instances.outcome.accrual import accrual, paced_by
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.rules.cluster import strictly_ascending
from ronda.instances.rules.problem import Problem, show


def budget_problems(budget: Budget, cluster: Cluster) -> Iterator[Problem]:
    """Yield the limits that are inconsistent, or impossible on a (consistent) cluster."""
    shapes = [*_shapes(budget), *_pacing(budget)]
    yield from shapes
    draw_w = least_by_node(cluster)
    least_w = float(draw_w.sum())
    cap = budget.power_cap_w
    for k, value in enumerate(() if cap is None else cap.values):
        if _below(value, least_w):
            yield Problem(f"budget.power_cap_w.values[{k}]", f"{value:g} W", _at_least(least_w))
    if not shapes:
        yield from _energy(budget, least_w)
    yield from _rack_caps(cluster, draw_w)


def limit_problems(round: Round) -> Iterator[Problem]:
    """Yield the limits of a round that idle nodes alone exceed.

    Solvers detect and explain limits that jobs which must run make infeasible.
    """
    draw_w = least_by_node(round.cluster)
    least_w = float(draw_w.sum())
    for field in ("power_cap_w", "sustained_w"):
        limit = getattr(round, field)
        if limit is not None and _below(limit, least_w):
            yield Problem(field, f"{limit:g} W", _at_least(least_w))
    if round.energy_j is not None and _below(round.energy_j, least_w * round.window_s):
        found = f"{round.energy_j:g} J for the next {round.window_s:g} s"
        expected = f"at least {least_w * round.window_s:g} J: idle nodes draw {least_w:g} W"
        yield Problem("energy_j", found, expected)
    yield from _rack_caps(round.cluster, draw_w)


def least_by_node(cluster: Cluster) -> NDArray[np.float64]:
    """Return the watts of each node without jobs, asleep if that saves power, shape (N,)."""
    topology = cluster.topology
    return np.minimum(topology.awake_w, topology.sleep_w)


def _shapes(budget: Budget) -> Iterator[Problem]:
    named = {
        "power_cap_w": budget.power_cap_w,
        "energy.accrual": None if budget.energy is None else budget.energy.accrual,
        "energy_price_per_j": budget.energy_price_per_j,
        "carbon_g_per_j": budget.carbon_g_per_j,
    }
    for name, series in named.items():
        if series is not None:
            yield from _series(series, f"budget.{name}")


def _pacing(budget: Budget) -> Iterator[Problem]:
    """Check that the series of a pacing exists and has usable values."""
    energy = budget.energy
    if energy is None:
        return
    field = {
        "series": "energy.accrual",
        "price": "energy_price_per_j",
        "carbon": "carbon_g_per_j",
    }.get(energy.pacing)
    if energy.accrual is not None and energy.pacing != "series":
        found = f"a series with the pacing {energy.pacing!r}"
        yield Problem("budget.energy.accrual", found, "none, or the pacing 'series'")
    if field is None:
        return
    series = paced_by(budget)
    if series is None:
        found = f"{energy.pacing!r} without budget.{field}"
        yield Problem("budget.energy.pacing", found, "the series that it follows")
    elif energy.pacing != "series" and not all(v > 0 for v in series.values):
        found = f"0 with the pacing {energy.pacing!r}"
        yield Problem(f"budget.{field}.values", found, "values above 0: it accrues by 1/value")
    elif not any(
        v > 0 for t, v in zip(series.times_s, series.values, strict=False) if t < energy.horizon_s
    ):
        yield Problem(f"budget.{field}.values", "0 over the whole horizon", "some value above 0")


def _energy(budget: Budget, least_w: float) -> Iterator[Problem]:
    """Check that idle nodes alone never overdraw the energy budget."""
    energy = budget.energy
    if energy is None:
        return
    least_j = least_w * energy.horizon_s  # after the horizon the budget must last indefinitely
    line = accrual(budget, min(least_w, energy.sustained_w))
    if energy.pacing not in ("even", "demand"):
        accrued = (line.at(line.times_s) - energy.credit_j) / energy.joules
        for share, time_s in zip(accrued.tolist(), line.times_s.tolist(), strict=True):
            needed_j = least_w * time_s - energy.credit_j
            if needed_j > 0:
                least_j = max(least_j, needed_j / share if share > 0 else inf)
    if least_j == inf:
        found = f"no energy at first, by the pacing {energy.pacing!r}"
        yield Problem("budget.energy", found, f"credit_j for idle nodes, which draw {least_w:g} W")
    elif _below(energy.joules, least_j):
        found = f"{energy.joules:g} J for {energy.horizon_s:g} s"
        expected = f"at least {least_j:g} J: idle nodes draw {least_w:g} W"
        yield Problem("budget.energy.joules", found, expected)


def _series(series: StepSeries, place: str) -> Iterator[Problem]:
    """Check that times ascend from 0 and that each time has a value."""
    if len(series.values) != len(series.times_s):
        found = f"{len(series.values)} values for {len(series.times_s)} times"
        yield Problem(f"{place}.values", found, "a value for each time")
    if not strictly_ascending(series.times_s):
        yield Problem(f"{place}.times_s", "times that do not ascend", "ascending times from 0")
    elif series.times_s[0] != 0:
        yield Problem(f"{place}.times_s[0]", f"{series.times_s[0]:g}", "0")


def _rack_caps(cluster: Cluster, draw_w: NDArray[np.float64]) -> Iterator[Problem]:
    """Check that no rack's cap is below the idle power of the nodes below the rack."""
    topology = cluster.topology
    parent = {r.name: r.parent for r in cluster.racks}
    below = dict.fromkeys(parent, 0.0)
    for k, name in enumerate(topology.racks):
        own = float(draw_w[topology.node_rack == k].sum())
        at: str | None = name
        while at:
            below[at] += own
            at = parent[at]
    for k, rack in enumerate(cluster.racks):
        if rack.power_cap_w is not None and _below(rack.power_cap_w, below[rack.name]):
            found = f"{rack.power_cap_w:g} W"
            yield Problem(f"cluster.racks[{k}].power_cap_w", found, _at_least(below[rack.name]))


def _below(limit: float, least: float) -> bool:
    return limit < least * (1 - 1e-9)  # a limit at the idle power itself passes


def _at_least(least_w: float) -> str:
    return f"at least {least_w:g} W, which idle nodes draw anyway"


def job_power_problems(
    budget: Budget, cluster: Cluster, jobs: Iterable[Job], profiles: Mapping[str, Profile]
) -> Iterator[Problem]:
    """Yield the jobs that fit under no value of the power cap even if they run alone.

    The objects must be consistent. A job counts with its least power, that is with its fewest GPUs
    at the lowest clock, while other nodes sleep. Only the first of similar jobs is reported.
    """
    cap = budget.power_cap_w
    if cap is None:
        return
    idle_w, most_w = float(least_by_node(cluster).sum()), max(cap.values)
    for job, job_w in _least_watts(cluster, jobs, profiles):
        if idle_w + job_w > most_w * (1 + 1e-9):
            expected = (
                f"at least {idle_w + job_w:g} W at some time: job {show(job.id)} needs {job_w:g} W "
                f"beside the {idle_w:g} W of nodes that idle"
            )
            yield Problem("budget.power_cap_w.values", f"at most {most_w:g} W", expected)


def least_cap_w(cluster: Cluster, jobs: Iterable[Job], profiles: Mapping[str, Profile]) -> float:
    """Return the lowest power cap in watts under which every job can run alone."""
    needed_w = [job_w for _, job_w in _least_watts(cluster, jobs, profiles)]
    return float(least_by_node(cluster).sum()) + max(needed_w, default=0.0)


def _least_watts(
    cluster: Cluster, jobs: Iterable[Job], profiles: Mapping[str, Profile]
) -> Iterator[tuple[Job, float]]:
    """Yield the first of each group of similar jobs that can run, with its least extra watts."""
    seen = set()
    for job in jobs:
        kind = (job.profile, job.gpus, job.min_gpus, job.partition, job.gpu_types)
        if kind not in seen:
            seen.add(kind)
            job_w = _least_w(job, profiles[job.profile], cluster)
            if job_w < inf:
                yield job, job_w


def _least_w(job: Job, profile: Profile, cluster: Cluster) -> float:
    """Return the least additional watts of a running job, or infinity if it cannot run."""
    topology = cluster.topology
    spared_w = topology.awake_w - least_by_node(cluster)
    found = inf
    for index, pool in enumerate(topology.pools):
        name = pool.gpu_type.name
        if name not in profile.throughput or not job.may_use(pool):
            continue
        rigid = isinstance(profile.throughput[name], Rigid)
        gpus = job.gpus if rigid or job.min_gpus is None else min(job.min_gpus, job.gpus)
        nodes = -(-gpus // pool.gpus_per_node)
        woken_w = nodes * float(np.min(spared_w[topology.node_pool == index]))
        curve, clock = profile.power.get(name), 1.0 if rigid else pool.gpu_type.clocks[0]
        each_w = pool.gpu_type.idle_w if curve is None else least_power_w(curve, clock)
        found = min(found, gpus * (each_w - pool.gpu_type.idle_w) + woken_w)
    return found
