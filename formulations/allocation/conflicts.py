"""Reading the allocation model: warm starts in, choices and prices out, and what cannot be met.

Works on the `Case` that a model was made from; nothing here needs Pyomo or a solver.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ronda.formulations.allocation.case import Case
from ronda.formulations.watts.nodes import NodeClass
from ronda.instances.arrays import Rows

UNITS = {
    "gpus": 1.0,
    "whole_nodes": 1.0,
    "power_cap": 1e3,
    "energy_window": 3.6e6,
    "rack_power": 1e3,
}
"""Constraint families that have a price, and how many users' units (GPUs, nodes, watts, joules) one
unit of the model is."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Constraints that no plan can meet together.

    Attributes
    ----------
    constraints
        Their names in the model.
    message
        Why, in words.
    """

    constraints: tuple[str, ...]
    message: str


def warm_start(model: Any, chosen: Rows) -> None:
    """Give the model's variables the values of a choice: the warm start of the next solve.

    Parameters
    ----------
    model
        As `ronda.formulations.allocation.pyomo_model.build` returns it.
    chosen
        (J,) row of each job, -1 for none. Rows that are not in the model are left out.
    """
    case: Case = model.case
    taken = np.isin(case.rows, chosen[chosen >= 0])
    for variable, number in zip(model.x.values(), taken.astype(float).tolist(), strict=True):
        variable.set_value(number, skip_validation=True)
    if case.sleeps:
        counts = awake_for(case.classes, gpus_by_pool(case, chosen))
        for variable, count in zip(model.awake.values(), counts, strict=True):
            variable.set_value(count, skip_validation=True)


def chosen_rows(model: Any) -> Rows:
    """Return the (J,) row that the model's variables choose for each job, -1 for none."""
    case: Case = model.case
    taken = np.array([v.value for v in model.x.values()], dtype=float) > 0.5
    chosen = np.full(len(case.table.jobs), -1, dtype=np.int64)
    chosen[case.job[taken]] = case.rows[taken]
    return chosen


def prices(case: Case, duals: Mapping[str, float]) -> dict[str, float]:
    """Return what one more GPU, node, watt or joule is worth, by constraint name.

    Parameters
    ----------
    case
        What the model was made from.
    duals
        Duals of the model's rows, by name.
    """
    found = {}
    for name, dual in duals.items():
        unit = UNITS.get(name.partition("[")[0])
        if unit is not None:
            found[name] = max(0.0, dual) * case.scale / unit
    return found


def gpus_by_pool(case: Case, chosen: Rows) -> list[int]:
    """Return how many GPUs a choice uses in each pool."""
    rows = chosen[chosen >= 0]
    table = case.table
    used = np.bincount(table.pool[rows], table.gpus[rows], minlength=len(table.pools))
    return [round(n) for n in used.tolist()]


def awake_for(classes: tuple[NodeClass, ...], gpus: list[int]) -> list[int]:
    """Return how many nodes of each class so many GPUs keep awake, the most frugal class first.

    Parameters
    ----------
    classes
        The nodes.
    gpus
        (P,) GPUs in use in each pool.
    """
    counts = [0] * len(classes)
    left = list(gpus)
    frugal = sorted(
        range(len(classes)), key=lambda c: classes[c].saves_w / classes[c].gpus_per_node
    )
    for c in frugal:
        kind = classes[c]
        counts[c] = min(kind.count, -(-left[kind.pool] // kind.gpus_per_node))
        left[kind.pool] = max(0, left[kind.pool] - counts[c] * kind.gpus_per_node)
    return counts


def within(case: Case, chosen: Rows) -> bool:
    """Tell whether a choice meets the model's constraints, racks' power caps left aside.

    Parameters
    ----------
    case
        What the model was made from.
    chosen
        (J,) row of each job, -1 for none.
    """
    table = case.table
    gpus = gpus_by_pool(case, chosen)
    if any(n > pool.gpus for n, pool in zip(gpus, table.pools, strict=True)):
        return False
    if (chosen[table.must_run] < 0).any() or not _whole(case, chosen[chosen >= 0]):
        return False
    if case.round.watts is None:
        return True
    counts = awake_for(case.classes, gpus) if case.sleeps else [c.count for c in case.classes]
    nodes_w = sum(
        n * c.awake_w + (c.count - n) * c.sleep_w for c, n in zip(case.classes, counts, strict=True)
    )
    drawn_w = nodes_w + float(table.extra_w[chosen[chosen >= 0]].sum())
    return drawn_w <= case.round.watts * (1 + 1e-9)


def _whole(case: Case, rows: Rows) -> bool:
    """Tell whether rows meet the ``whole_nodes`` constraints."""
    for p, pool in enumerate(case.table.pools):
        gpus = case.table.gpus[rows[case.table.pool[rows] == p]]
        for shares in case.node_shares(p, gpus).values():
            if shares.sum() > pool.nodes * (1 + 1e-9):
                return False
    return True


def least_w(case: Case, gpus: list[int], extra_w: float) -> float:
    """Return the least power in watts with so many GPUs in use in each pool.

    A lower bound: nodes are woken in fractions.

    Parameters
    ----------
    case
        What the model was made from.
    gpus
        (P,) GPUs in use in each pool.
    extra_w
        What the jobs add to the power of their GPUs idle.
    """
    classes = case.classes
    if not case.sleeps:
        return sum(c.count * c.awake_w for c in classes) + extra_w
    total = extra_w + sum(c.count * min(c.sleep_w, c.awake_w) for c in classes)
    left = list(gpus)
    for kind in sorted(classes, key=lambda c: max(0.0, c.saves_w) / c.gpus_per_node):
        used = min(left[kind.pool], kind.count * kind.gpus_per_node)
        left[kind.pool] -= used
        total += max(0.0, kind.saves_w) * used / kind.gpus_per_node
    return total


def shortages(case: Case) -> list[Conflict]:
    """Return the limits that jobs which must run, or the idle cluster, break by themselves."""
    table = case.table
    if not table.must_run.any() and case.round.watts is None and not case.racks:
        return []
    must = np.flatnonzero(table.must_run[table.job])
    owners = [f"one_option[{table.jobs[j].job.id}]" for j in table.job[must].tolist()]
    gpus = np.bincount(table.pool[must], table.gpus[must], minlength=len(table.pools))
    found = []
    for p, pool in enumerate(table.pools):
        if gpus[p] > pool.gpus:
            jobs = [o for o, at in zip(owners, table.pool[must].tolist(), strict=True) if at == p]
            found.append(
                Conflict(
                    (*jobs, f"gpus[{pool.name}]"),
                    f"jobs that must run need {gpus[p]:.0f} GPUs of pool {pool.name}, "
                    f"which has {pool.gpus}",
                )
            )
    extra = float(case.extra_w[np.isin(case.rows, must)].sum())
    needed = least_w(case, [round(n) for n in gpus.tolist()], extra)
    return [*found, *_over_power(case, owners, needed), *_over_rack(case)]


def _over_power(case: Case, owners: list[str], needed_w: float) -> list[Conflict]:
    """Return the limits on power and energy that are below what is drawn in any case."""
    who = f"{len(owners)} jobs that must run and" if owners else ""
    draws = f"{who} the cluster {'' if owners else 'without any job '}draw"
    draws = " ".join(draws.split()) + ("" if owners else "s") + f" at least {needed_w:.6g} W"
    limits = {}
    if case.round.power_cap_w is not None:
        limits["power_cap"] = case.round.power_cap_w
    if case.round.energy_j is not None:
        limits["energy_window"] = case.round.energy_j / case.round.window_s
    return [
        Conflict((*owners, name), f"{draws}; {name} allows {watts:.6g} W")
        for name, watts in limits.items()
        if needed_w > watts * (1 + 1e-9)
    ]


def _over_rack(case: Case) -> list[Conflict]:
    """Return the racks whose nodes draw more than the cap without any job."""
    found = []
    for cap in case.racks:
        kinds = [c for c in case.classes if c.rack in cap.racks]
        idle_w = sum(
            c.count * (min(c.sleep_w, c.awake_w) if case.sleeps else c.awake_w) for c in kinds
        )
        if idle_w > cap.cap_w * (1 + 1e-9):
            message = (
                f"the nodes of rack {cap.name} draw {idle_w:.6g} W without any job; "
                f"its cap is {cap.cap_w:.6g} W"
            )
            found.append(Conflict((f"rack_power[{cap.name}]",), message))
    return found
