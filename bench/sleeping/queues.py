"""Sleep beside a queue: nodes asleep and wake-ups against what jobs wait for them.

Days of Venus from 10 June on, on as many nodes as make a load, are driven with no sleep, with nodes
that sleep as soon as no job uses them, with CES, and with a queue that waits where that costs less
than waking a node. All are told sizes by a predictor that was trained on April and May, and how
needs go on by the hour of the day from the two weeks before. The bound knows what was needed
without sleep: lot sizing with perfect foresight.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace

from ronda.bench.figures.style import colour, legend_below, new_figure, save, tidy
from ronda.bench.study.harness import Folder, markdown, numbers, option, policies, study
from ronda.bench.study.qssf import FIRST_DAY, trained, weeks
from ronda.formulations.sleeping.lot_sizing import least_cost
from ronda.formulations.sleeping.outcome import NodeDraw
from ronda.instances.demand import DAY_S, Demand, demand_of
from ronda.instances.files.json import write
from ronda.instances.instance import Cadence, Instance
from ronda.instances.outcome.metrics import job_figures
from ronda.solvers.horizon.driver import run
from ronda.solvers.sleeping.history import STEP_S

POLICIES = (
    "qssf,race-to-idle(queue=qssf),ces(cluster=venus),ces(cluster=earth),"
    "wake-or-wait(delay=3),wake-or-wait,wake-or-wait(delay=100),"
    "wake-or-wait(price=50),wake-or-wait(price=200)"
)
BEFORE = 14
"""Days before, from which it is known how needs go on."""

BOUND, PRICE = "bound", 50.0
"""The row of foresight, and what a wake-up costs there, in nodes awake for a step."""

DRAW = NodeDraw()
GREY = "#888888"


@lru_cache(maxsize=4)
def drowsy(path: str, first: int, days: int, load: float, *, before: bool = False) -> Instance:
    """Return days of Venus on the nodes that make a load, which may sleep; or those before."""
    found = weeks(path, first, days, load)
    if before:
        nodes = found.cluster.topology.node_gpus.size
        found = weeks(path, first - BEFORE, BEFORE, load, nodes)
    awake_w = max(0.0, DRAW.wake_w - DRAW.idle_w)
    groups = tuple(
        replace(
            group,
            host_idle_w=DRAW.idle_w,
            sleep_w=DRAW.sleep_w,
            wake_s=DRAW.wake_s,
            wake_w=awake_w,
        )
        for group in found.cluster.node_groups
    )
    cluster = replace(found.cluster, node_groups=groups)
    return replace(found, cluster=cluster, cadence=Cadence(period_s=STEP_S))


def history(path: str, first: int, days: int, load: float, folder: str) -> str:
    """Return the file of what was needed in the days before, without sleep."""
    file = Path(folder) / f"before-{load:g}.json"
    if not file.exists():
        before = drowsy(path, first, days, load, before=True)
        made = demand_of(before, run(before, "qssf", knowledge="oracle", time_limit_s=None))
        steps = round(BEFORE * DAY_S / STEP_S)
        write(replace(made, needed=made.needed[:steps], total=made.total[:steps]), file)
    return str(file)


def measure(
    path: str, load: float, policy: str, first: int, days: int, folder: str
) -> dict[str, Any]:
    """Drive one policy over the days, or solve the bound on what they need without sleep."""
    given = drowsy(path, first, days, load)
    spec = "qssf" if policy == BOUND else policy
    if policy.startswith(("ces", "wake-or-wait")):
        name, _, inside = policy.rstrip(")").partition("(")
        told = f"history={history(path, first, days, load, folder)}"
        spec = f"{name}({', '.join(filter(None, (inside, told)))})"
    schedule = run(given, spec, knowledge="history", predictor=trained(path), time_limit_s=None)
    found: dict[str, Any] = {
        "jobs": len(given.jobs),
        "nodes": given.cluster.topology.node_gpus.size,
    }
    if policy == BOUND:
        return found | _foresight(demand_of(given, schedule), days)
    queue_s = np.array(job_figures(schedule).queue_s)
    found |= _asleep(schedule.sleeps, min(days * DAY_S, schedule.end_s), days)
    return found | {
        "mean_jct_s": float(np.mean(job_figures(schedule).jct_s)),
        "mean_queue_s": float(queue_s.mean()),
        "p99_queue_s": float(np.quantile(queue_s, 0.99)),
        "p999_queue_s": float(np.quantile(queue_s, 0.999)),
        "violations": sum(len(record.violations) for record in schedule.rounds),
    }


def _foresight(series: Demand, days: int) -> dict[str, float]:
    """Return what lot sizing does that knows all that is needed."""
    steps = min(len(series.needed), round(days * DAY_S / STEP_S))
    needed, total = series.needed_nodes[:steps], series.total_nodes[:steps]
    rise = np.diff(least_cost(needed, total, PRICE))
    total_s = float((total - least_cost(needed, total, PRICE)).sum() * STEP_S)
    return _saved(total_s, int((rise > 0).sum()), int(rise[rise > 0].sum()), steps * STEP_S, days)


def _asleep(
    sleeps: Sequence[tuple[int, float, float]], end_s: float, days: int
) -> dict[str, float]:
    """Return sleep and wake-ups until `end_s`; nodes that wake at once are one wake-up."""
    total_s = sum(max(0.0, min(until_s, end_s) - from_s) for _, from_s, until_s in sleeps)
    woken = [until_s for _, _, until_s in sleeps if until_s < end_s]
    return _saved(total_s, len(set(woken)), len(woken), end_s, days)


def _saved(total_s: float, wakes: int, woken: int, end_s: float, days: int) -> dict[str, float]:
    joules = total_s * (DRAW.idle_w - DRAW.sleep_w) - woken * DRAW.wake_s * DRAW.wake_w
    return {
        "sleeping_nodes": total_s / end_s,
        "wakeups_per_day": wakes / days,
        "woken_per_day": woken / days,
        "saved_kwh_per_day": joules / 3.6e6 / days,
    }


HEADS = {
    "sleeping_nodes": ("sleeping nodes", ".1f"),
    "wakeups_per_day": ("wake-ups a day", ".1f"),
    "woken_per_day": ("nodes a day", ".1f"),
    "saved_kwh_per_day": ("saved, kWh a day", ",.0f"),
    "mean_jct_s": ("mean JCT", ",.0f"),
    "mean_queue_s": ("mean queue", ",.1f"),
    "p99_queue_s": ("p99 queue", ",.0f"),
    "p999_queue_s": ("p99.9 queue", ",.0f"),
}
"""Heading and format of each figure."""


def table(runs: pd.DataFrame) -> str:
    """Return sleep, wake-ups and waiting by load and policy."""
    rows = []
    for row in runs.to_dict("records"):
        known = (
            "" if pd.isna(row.get(name)) else f"{row[name]:{form}}"
            for name, (_, form) in HEADS.items()
        )
        rows.append([f"{row['load']:g}", f"{row['nodes']}", f"`{row['policy']}`", *known])
    header = ["load", "nodes", "policy", *(title for title, _ in HEADS.values())]
    return markdown(header, rows, words=3)


def draw(runs: pd.DataFrame, folder: Folder) -> None:
    """Draw sleeping nodes against wake-ups and against waiting, a panel each, by load."""
    figure = new_figure(9.0, 4.0)
    panels, rows = figure.subplots(1, 2, sharey=True), []
    kinds = list(dict.fromkeys(policy.partition("(")[0] for policy in runs.policy))
    marks = dict(zip(runs.load.unique(), "o^sDv", strict=False))
    for row in runs.to_dict("records"):
        kind = row["policy"].partition("(")[0]
        rows.append((row["load"], row["policy"], *(row.get(name, "") for name in HEADS)))
        for axes, name in zip(panels, ("wakeups_per_day", "mean_queue_s"), strict=True):
            if not pd.isna(row.get(name)):
                axes.plot(
                    row[name],
                    row["sleeping_nodes"] / row["nodes"],
                    marks.get(row["load"], "x"),
                    color=colour(kinds.index(kind)),
                )
    for axes, words in zip(panels, ("wake-ups a day", "mean queueing (s)"), strict=True):
        axes.set_xscale("symlog", linthresh=1)
        tidy(axes, words, "nodes asleep / all" if axes is panels[0] else "")
    handles = [
        panels[0].plot([], [], "o", color=colour(index), label=kind)[0]
        for index, kind in enumerate(kinds)
    ] + [
        panels[0].plot([], [], mark, color=GREY, label=f"load {load:g}")[0]
        for load, mark in marks.items()
    ]
    legend_below(figure, handles)
    save(figure, folder.path / "sleep-queues", ("load", "policy", *HEADS), rows)


def compare(
    folder: Folder,
    trace: Path,
    policies: Sequence[str],
    loads: Sequence[float],
    first: int,
    days: int,
) -> int:
    """Measure all cases; return 1 if a decision broke a rule."""
    cases = [
        {"path": str(trace), "load": load, "policy": policy}
        | {"first": first, "days": days, "folder": str(folder.path)}
        for load, policy in product(loads, (*policies, BOUND))
    ]
    runs = folder.measure(cases, measure)
    folder.write(table(runs))
    draw(runs, folder)
    return int((runs.violations > 0).any())


command = study(
    "sleep-queues",
    __doc__,
    compare,
    [
        option("--venus", "trace", type=Path, required=True, help="Venus' jobs."),
        policies(POLICIES),
        numbers("--loads", "0.6,0.75", "Of Venus."),
        option("--first", type=int, default=FIRST_DAY + 7, help="Day, from 1 April on."),
        option("--days", type=int, default=21, help="Of Venus that are driven."),
    ],
)
