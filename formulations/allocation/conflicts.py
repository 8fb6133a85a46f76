"""What a round asks for in any case, against each of its rows; whether a choice keeps them all."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ronda.formulations.allocation.case import Case
from ronda.formulations.allocation.rows import Row, gpus, power, rack_power, separable
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import awake_for, least_awake
from ronda.instances.arrays import Rows

ROUNDING = 1 + 1e-9
"""What may be used of a limit: sums of watts depend on their order."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Constraints, by name in the model, that no plan can meet together, and why in words."""

    constraints: tuple[str, ...]
    message: str


def gpus_by_pool(table: OptionTable, rows: Rows) -> list[int]:
    """Return (P,) how many GPUs rows use together."""
    used = np.bincount(table.pool[rows], table.gpus[rows], minlength=len(table.pools))
    return [round(n) for n in used.tolist()]


def within(case: Case, chosen: Rows) -> bool:
    """Tell whether a choice meets the model's constraints, racks' power caps left aside.

    `chosen` (J,) is the row of each job, -1 for none; they need not be rows of the case.
    """
    if (chosen[case.table.must_run] < 0).any():
        return False
    rows = chosen[chosen >= 0]
    nothing = np.zeros(len(rows))
    problem = separable(replace(case, rows=rows, value=nothing, racks=(), most_rack_kw={}))
    awake = awake_for(case.classes, gpus_by_pool(case.table, rows)) if case.sleeps else ()
    excess = problem.excess(np.arange(len(rows)), np.array(awake, dtype=float))
    return bool((excess <= (ROUNDING - 1) * np.abs(problem.capacity)).all())


def shortages(case: Case) -> list[Conflict]:
    """Return the limits that jobs which must run, or the idle cluster, break by themselves."""
    table = case.table
    if not table.must_run.any() and case.round.watts is None and not case.racks:
        return []
    must = replace(case, rows=np.flatnonzero(table.must_run[table.job]), waking=None)
    return [*_few_gpus(must), *_over_power(must), *_over_rack(must)]


def _owners(case: Case, rows: Rows) -> tuple[str, ...]:
    """Return the constraints that make the jobs of some rows run."""
    return tuple(f"one_option[{case.table.jobs[j].job.id}]" for j in case.table.job[rows].tolist())


def _few_gpus(must: Case) -> Iterator[Conflict]:
    """Yield the pools that are too small for the jobs that must run."""
    for row, pool in zip(gpus(must), must.table.pools, strict=True):
        if (needed := row.use.sum()) > pool.gpus:
            message = (
                f"jobs that must run need {needed:.0f} GPUs of pool {pool.name}, "
                f"which has {pool.gpus}"
            )
            yield Conflict((*_owners(must, must.rows[row.use > 0]), row.name), message)


def _over_power(must: Case) -> Iterator[Conflict]:
    """Yield the limits on power and energy that are below what is drawn in any case."""
    owners = _owners(must, must.rows)
    who = f"{len(owners)} jobs that must run and the cluster draw"
    limits = {
        "power_cap": (must.round.power_cap_w, "W"),
        "energy_window": (must.round.energy_j, "J"),
    }
    for row in power(must):
        limit, unit = limits[row.name]
        assert limit is not None
        least = limit + _excess(must, row, gpus_by_pool(must.table, must.rows))
        if least > limit * ROUNDING:
            draws = who if owners else "the cluster without any job draws"
            message = f"{draws} at least {least:.6g} {unit}; {row.name} allows {limit:.6g} {unit}"
            yield Conflict((*owners, row.name), message)


def _over_rack(case: Case) -> Iterator[Conflict]:
    """Yield the racks whose nodes draw more than the cap without any job."""
    for row, cap in zip(rack_power(case), case.racks, strict=True):
        idle_w = cap.cap_w + _excess(case, row, [0] * len(case.table.pools))
        if idle_w > cap.cap_w * ROUNDING:
            message = (
                f"the nodes of rack {cap.name} draw {idle_w:.6g} W without any job; "
                f"its cap is {cap.cap_w:.6g} W"
            )
            yield Conflict((row.name,), message)


def _excess(case: Case, row: Row, gpus: list[int]) -> float:
    """Return by how much all options, and the nodes that GPUs of each pool need, exceed a row."""
    counts = [c.count for c in case.classes]
    awake = least_awake(case.classes, gpus) if case.sleeps else counts
    return float(row.use.sum() + np.dot(row.nodes, awake)) - row.capacity
