"""Tables of ronda's documents for notebooks."""

from collections import Counter

import numpy as np

from ronda.instances.cluster import Pool
from ronda.instances.instance import Instance
from ronda.instances.outcome.metrics import job_figures
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.tables.table import Table

SHOWN = 10
"""The number of jobs and of prices of a plan that are shown."""


def instance_table(instance: Instance) -> Table:
    """Return a table of an instance's machines, with its number of jobs and its limits below."""
    last_s = max((job.submit_s for job in instance.jobs), default=0.0)
    applications = f"{len(instance.profiles)} profiles"
    notes = [f"{len(instance.jobs):,} jobs of {applications}, submitted within {last_s:,.6g} s"]
    budget = instance.budget
    if budget.power_cap_w is not None:
        notes.append(f"power cap {budget.power_cap_w.values[0]:,.6g} W at first")
    if budget.energy is not None:
        notes.append(f"energy budget {budget.energy.joules:,.6g} J")
    told = {"source": instance.source, "licence": instance.licence}
    notes += [f"{name}: {text}" for name, text in told.items() if text]
    return Table.of(f"Instance {instance.name}", map(_pool, instance.cluster.topology.pools), notes)


def round_table(round: Round) -> Table:
    """Return a table of a round's machines and their use, with its limits below."""
    used = Counter[int]()
    arrays = set[str | None]()
    for held in round.held.values():
        if held.array is None or held.array not in arrays:
            used[held.option.pool] += held.option.gpus
        arrays.add(held.array)
    notes = [f"{len(round.waiting):,} jobs wait, {len(round.running):,} run"]
    if round.power_cap_w is not None:
        notes.append(f"power cap {round.power_cap_w:,.6g} W")
    if round.energy_j is not None:
        notes.append(f"energy {round.energy_j:,.6g} J for {round.window_s:,.6g} s")
    if round.asleep:
        notes.append(f"{len(round.asleep):,} nodes asleep")
    pools = enumerate(round.cluster.topology.pools)
    rows = (_pool(pool) | {"in use": f"{used[index]:,}"} for index, pool in pools)
    return Table.of(f"Round {round.name} at {round.now_s:,.6g} s", rows, notes)


def _pool(pool: Pool) -> dict[str, str]:
    return {"pool": pool.name, "nodes": f"{pool.nodes:,}", "GPUs": f"{pool.gpus:,}"}


def plan_table(plan: Plan) -> Table:
    """Return a table of the allocations of a plan's first jobs, with its quality below."""
    rows = [
        {
            "job": job,
            "GPUs": f"{held.option.gpus:,}",
            "clock": f"{held.option.clock:,.6g}",
            "batch": f"{held.option.batch:,.6g}",
            "rate (work/s)": f"{held.option.rate:,.6g}",
            "power (W)": f"{held.option.power_w:,.6g}",
            "node: GPUs": ", ".join(f"{node}: {gpus}" for node, gpus in held.placement),
        }
        for job, held in [*plan.allocations.items()][:SHOWN]
    ]
    left = len(plan.allocations) - len(rows)
    notes = [f"and {left:,} more jobs"] if left else []
    worth = {"objective": plan.objective, "bound": plan.bound, "gap": plan.gap}
    told = [f"{name} {value:,.6g}" for name, value in worth.items() if value is not None]
    notes.append(", ".join([f"{plan.status}, stopped by {plan.stop}", *told]))
    if prices := [f"{name} {price:,.6g}" for name, price in plan.prices.items() if price][:SHOWN]:
        notes.append(f"prices: {', '.join(prices)}")
    title = f"Plan of {plan.policy or 'a policy'}: {len(plan.allocations):,} jobs run"
    return Table.of(title, rows, notes)


def schedule_table(schedule: Schedule) -> Table:
    """Return a table of a schedule's main figures."""
    figures = job_figures(schedule)
    jct_s = figures.jct_s[~np.isnan(figures.jct_s)]
    solve_s = [record.solve_s for record in schedule.rounds]
    numbers = {
        "jobs": len(schedule.jobs),
        "without an end": sum(outcome.end_s is None for outcome in schedule.jobs),
        "mean JCT (s)": jct_s.mean() if jct_s.size else None,
        "p99 JCT (s)": np.percentile(jct_s, 99) if jct_s.size else None,
        "end (s)": schedule.end_s,
        "GPU-hours": figures.gpu_s.sum() / 3600,
        "energy (J)": schedule.energy.total_j,
        "restarts": figures.restarts.sum(),
        "decisions": len(schedule.rounds),
        "median decision (s)": np.median(solve_s) if solve_s else None,
    }
    known = ((name, f"{value:,.6g}") for name, value in numbers.items() if value is not None)
    title = f"Schedule of {schedule.instance} by {schedule.policy}, seed {schedule.seed}"
    return Table(title, ("figure", "value"), tuple(known))
