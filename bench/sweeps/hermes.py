"""Hermes against FIFO, round-robin and SLAQ, on generated sweeps of N trials on one GPU.

What is measured is the time until every good trial has reported a loss within 10 % of the least
(the target of the search): the paper's "time of hyper-parameter optimisation" is not defined in
what of it is public. Every cell is the ratio of the mean times of some seeds. First the share of
good trials is turned at a cost of 0.1 reports for each preemption, then the cost with one good
trial.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from ronda.bench.figures.style import new_figure, save
from ronda.bench.study.harness import Folder, markdown, numbers, seeds, study
from ronda.instances import generate
from ronda.instances.instance import Instance
from ronda.instances.outcome.searched import TOLERANCE, final_loss, reports
from ronda.instances.schedule import Schedule
from ronda.solvers.horizon.driver import run

RIVALS = {"fifo": "FIFO", "round-robin": "round-robin", "slaq": "SLAQ"}
REPORTS, REPORT_S = 20, 60.0
TARGET = 0.1
ONE_GOOD, USUAL_COST = 0.0, 0.1
PUBLISHED = 4.04


def until_all_good_s(instance: Instance, schedule: Schedule) -> float:
    """Return the time until all good trials of the one sweep have reported the target."""
    final = [final_loss(job) for job in instance.jobs]
    target, good = min(final) * (1 + TARGET), min(final) * (1 + TOLERANCE)
    told = zip(instance.jobs, schedule.jobs, final, strict=True)
    return max(
        min(time_s for time_s, loss in reports(job, outcome) if loss <= target)
        for job, outcome, last in told
        if last <= good
    )


def measure(trials: int, good: float, cost: float, seed: int) -> dict[str, Any]:
    """Return the time that each policy takes; `cost` of a preemption is in reports."""
    like = generate.Trials(good=good, reports=REPORTS, report_s=REPORT_S, restart_s=cost * REPORT_S)
    given = generate.sweep(trials, 1, seed, like)
    return {
        name: until_all_good_s(given, run(given, name, seed=seed)) for name in ("hermes", *RIVALS)
    }


def ratios(lines: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Return the mean times of rivals over those of Hermes, by trials and `axis`."""
    mean = lines.groupby(["trials", axis])[["hermes", *RIVALS]].mean()
    return mean[[*RIVALS]].div(mean["hermes"], axis=0)


def table(lines: pd.DataFrame) -> str:
    """Return the best and the worst cell against each rival."""
    mean = lines.groupby(["trials", "good", "cost"])[["hermes", *RIVALS]].mean()
    rows = []
    for rival, title in RIVALS.items():
        ratio = mean[rival] / mean["hermes"]
        best, worst = ratio.idxmax(), ratio.idxmin()
        rows.append([title, f"{ratio.max():.2f}", _cell(best), f"{ratio.min():.2f}", _cell(worst)])
    header = ["Hermes against", "best case", "where", "worst case", "where"]
    said = f"\nPublished, against the worst of them: up to {PUBLISHED:g}.\n"
    return markdown(header, rows) + said


def _cell(where: Any) -> str:
    trials, good, cost = where
    share = f"{good:.0%} good" if good else "one good"
    return f"{trials} trials, {share}, {cost:g} reports a preemption"


def draw(lines: pd.DataFrame, folder: Folder) -> None:
    """Draw the ratios as heat maps: over trials and share of good ones, over trials and cost."""
    figure = new_figure(9.0, 5.4)
    panels = figure.subplots(2, 3, sharex="row")
    rows = []
    parts = {
        "good": ("share of good trials", lines[lines.cost == USUAL_COST]),
        "cost": ("reports that a preemption costs", lines[lines.good == ONE_GOOD]),
    }
    top = 0.0
    for axis, (_, part) in parts.items():
        top = max(top, float(ratios(part, axis).max().max()))
    for k, (axis, (title, part)) in enumerate(parts.items()):
        found = ratios(part, axis)
        for j, (rival, name) in enumerate(RIVALS.items()):
            grid = found[rival].unstack(axis)
            axes = panels[k, j]
            shown = np.log2(grid.to_numpy())
            down: list[Any] = grid.index.tolist()
            along: list[Any] = grid.columns.tolist()
            axes.imshow(shown, cmap="RdBu", vmin=-np.log2(top), vmax=np.log2(top), aspect="auto")
            for (y, x), value in np.ndenumerate(grid.to_numpy()):
                ink = "white" if abs(np.log2(value)) > 0.6 * np.log2(top) else "black"
                axes.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize=7, color=ink)
                rows.append((rival, axis, down[y], along[x], value))
            axes.set_xticks(range(len(along)), [_label(axis, c) for c in along])
            axes.set_yticks(range(len(down)), [f"{n}" for n in down])
            axes.tick_params(labelsize=8)
            axes.set_xlabel(title, fontsize=9)
            if j == 0:
                axes.set_ylabel("trials of the GPU", fontsize=9)
            axes.set_title(f"{name} / Hermes", fontsize=10)
    save(figure, folder.path / "hermes", ("rival", "turned", "trials", "value", "ratio"), rows)


def _label(axis: str, value: float) -> str:
    if axis == "cost":
        return f"{value:g}"
    return f"{value:.0%}" if value else "one"


def compare(
    folder: Folder,
    seeds: Sequence[int],
    trials: Sequence[float],
    good: Sequence[float],
    costs: Sequence[float],
) -> None:
    """Measure all cells."""
    cells = [(g, USUAL_COST) for g in good] + [(ONE_GOOD, c) for c in costs if c != USUAL_COST]
    cases = [
        {"trials": int(n), "good": g, "cost": c, "seed": seed}
        for (g, c), n, seed in product(cells, trials, seeds)
    ]
    lines = folder.measure(cases, measure)
    folder.write(table(lines))
    draw(lines, folder)


command = study(
    "hermes",
    __doc__,
    compare,
    [
        seeds("0-19"),
        numbers("--trials", "4,8,16,32", "Trials of the one GPU."),
        numbers("--good", "0,0.25,0.5,1", "Shares of good trials; 0: one.", zero=True),
        numbers("--costs", "0,0.1,0.5,1", "Reports that a preemption costs.", zero=True),
    ],
)
