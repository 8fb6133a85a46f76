"""The picture and the table of `ronda.bench.study.one_round`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from ronda.bench.figures.style import colour, new_figure, save_picture, tidy
from ronda.bench.study.one_round_lines import Line

RULES = {
    "relative": "relative: (dJCT/JCT) / (dE/E)",
    "prices": "two prices: dJCT / (dE/budget + dn/N)",
}


FLOOR = 1e-4
"""The least excess that the picture tells apart: the gap to which optima are proven."""


def shares_of(lines: Sequence[Line]) -> list[float]:
    """Return the budgets, the loosest first."""
    return sorted({line.share for line in lines}, reverse=True)


def excesses(lines: Sequence[Line], share: float, rule: str) -> list[float]:
    """Return the relative excess over the optimum of every round that has one, at one budget."""
    found = [line.excess(rule) for line in lines if line.share == share]
    return [excess for excess in found if excess is not None]


def table(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return one object per budget and rule: quantiles of the excess, in percent of the optimum.

    `unproven` counts rounds whose optimum is not proven to the gap; `bound_percent` is by how much
    the worst of these may lie above the true optimum.
    """
    rows = []
    for share in shares_of(lines):
        own = [line for line in lines if line.share == share]
        loose = [
            100 * (line.optimum_s / line.bound_s - 1)
            for line in own
            if line.status == "limit" and line.optimum_s and line.bound_s
        ]
        for rule in RULES:
            percent = 100 * np.array(excesses(lines, share, rule))
            marks = np.quantile(percent, (0, 0.25, 0.5, 0.75, 1)) if len(percent) else [None] * 5
            rows.append(
                {
                    "budget": share,
                    "rule": rule,
                    "rounds": len(percent),
                    "infeasible": sum(line.status == "infeasible" for line in own),
                    "unproven": len(loose),
                    "bound_percent": max(loose, default=0.0),
                    "mean_percent": float(percent.mean()) if len(percent) else None,
                    **dict(zip(("least", "lower", "median", "upper", "most"), marks, strict=True)),
                }
            )
    return rows


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw the excess over the optimum as boxes, by budget and rule; PNG, at once or not at all.

    Boxes reach from quartile to quartile, whiskers to the last round within 1.5 times that; every
    round is a dot. The axis is logarithmic; optimal answers are drawn at its lower end.
    """
    figure = new_figure(8.4, 4.6)
    axes = figure.subplots()
    axes.set_yscale("log")
    shares = shares_of(lines)
    for at, share in enumerate(shares):
        for index, rule in enumerate(RULES):
            data = np.maximum(excesses(lines, share, rule), FLOOR)
            if len(data):
                _box(axes, at + (index - 0.5) * 0.42, data, index, RULES[rule] if not at else "")
    axes.set_xticks(range(len(shares)))
    axes.set_xticklabels([_named(lines, share) for share in shares], fontsize=9)
    axes.set_xlim(-0.5, len(shares) - 0.4)
    axes.set_ylim(FLOOR / 1.3, 4)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:g} %"))
    axes.set_ylabel("mean JCT above the exact optimum", fontsize=9)
    axes.set_xlabel("energy budget, as a share of what the full-speed greedy uses", fontsize=9)
    axes.set_title("Greedy rules against the optimum of one round", fontsize=11)
    axes.grid(visible=True, axis="y", which="major", linewidth=0.4, alpha=0.5)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8.5, frameon=False, loc="upper right", ncols=2)
    tidy(axes)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_picture(figure, path)


def _box(axes: Axes, place: float, data: NDArray[np.float64], index: int, label: str) -> None:
    """Draw one box, its dots, and its median in words."""
    boxes = axes.boxplot(
        [data],
        positions=[place],
        widths=0.24,
        showfliers=False,
        patch_artist=True,
        medianprops={"color": "black", "linewidth": 1.4},
    )
    boxes["boxes"][0].set(facecolor=colour(index), alpha=0.5)
    if label:
        boxes["boxes"][0].set_label(label)
    spread = np.random.default_rng(index).uniform(-0.09, 0.09, len(data))
    axes.plot(place + spread, data, ".", markersize=2.5, color=colour(index), alpha=0.55)
    median = float(np.median(data))
    axes.text(place + 0.13, median, f"{100 * median:.2g} %", fontsize=8, va="center")


def _named(lines: Sequence[Line], share: float) -> str:
    """Return what a budget is called under its boxes."""
    rounds = sum(line.share == share and line.optimum_s is not None for line in lines)
    return f"{share:.0%}\n({rounds} rounds)"
