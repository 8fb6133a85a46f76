"""Greedy rules against the exact optimum of one round with an energy budget.

Over generated rounds, the mean JCT by PowerFlow's relative rule and by the two-price rule beside
the optimum of the same question (`ronda.bench.study.energy_snapshot`), which the price engine
certifies. Every job is served; the budget is a share of what the full-speed greedy without an eye
for energy uses. A round whose optimum was not proven in time is computed again by the next call.
"""

import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ronda.bench.figures.style import colour, new_figure, save, tidy
from ronda.bench.study.energy_snapshot import (
    EnergySnapshot,
    by_relative_rule,
    by_two_prices,
    energy_snapshot,
    exact_problem,
    full_speed_j,
)
from ronda.bench.study.harness import Folder, limit, markdown, numbers, seeds, study
from ronda.instances import generate
from ronda.instances.arrays import Floats
from ronda.instances.plan import StopReason
from ronda.solvers.contract import Deadline
from ronda.solvers.prices.engine import solve_separable
from ronda.solvers.prices.search import Search

GAP = 1e-4
"""Relative gap to which optima are proven, and the least excess that the picture tells apart."""

FEWEST, MOST = 20, 400
GPUS_PER_JOB = (1.6, 3.2)
"""Of the clusters, in turn."""

RULES = {
    "relative": "relative: (dJCT/JCT) / (dE/E)",
    "prices": "two prices: dJCT / (dE/budget + dn/N)",
}


def size(seed: int) -> tuple[int, int]:
    """Return the jobs (20 to 400, even in logarithm) and the GPUs of a round."""
    rng = np.random.default_rng([seed, 20230413])
    jobs = round(FEWEST * (MOST / FEWEST) ** float(rng.random()))
    return jobs, 8 * -(-round(jobs * GPUS_PER_JOB[seed % 2]) // 8)


@lru_cache(maxsize=1)
def _question(seed: int) -> tuple[EnergySnapshot, float]:
    """Return the question that a generated round asks, and the full-speed greedy's energy."""
    jobs, gpus = size(seed)
    snapshot = energy_snapshot(generate.round(jobs, gpus, "loose", seed))
    return snapshot, full_speed_j(snapshot)


def measure(seed: int, share: float, limit_s: float) -> dict[str, Any]:
    """Compare the rules with the optimum of one round, at a share of the full-speed energy.

    Returns
    -------
    dict
        ``relative_s, prices_s``: mean JCT by the rules, None if not even the smallest options
        are within the budget; ``optimum_s, bound_s``: the best plan's, and the bound below all;
        ``status``: "proven" to the gap, "limit" if time was up before, or "infeasible" if the
        budget does not serve all jobs together.
    """
    jobs, gpus = size(seed)
    snapshot, reference_j = _question(seed)
    budget_j = share * reference_j
    began = time.perf_counter()
    rules = [by_relative_rule(snapshot, budget_j), by_two_prices(snapshot, budget_j)]
    greedy_s = time.perf_counter() - began
    means = [None if chosen is None else snapshot.mean_s(chosen) for chosen in rules]
    known_s = min((mean for mean in means if mean is not None), default=None)
    found = {"jobs": jobs, "gpus": gpus, "relative_s": means[0], "prices_s": means[1]}
    return found | {"greedy_s": greedy_s} | _exact(snapshot, budget_j, limit_s, known_s)


def final(line: dict[str, Any]) -> bool:
    """Tell whether an optimum is proven, or no plan exists."""
    return line.get("status") in ("proven", "infeasible")


def _exact(
    snapshot: EnergySnapshot, budget_j: float, limit_s: float, known_s: float | None
) -> dict[str, Any]:
    """Solve the question to the gap; the answer is no worse than `known_s` of a rule."""
    problem, rows = exact_problem(snapshot, budget_j)
    began = time.perf_counter()
    found = solve_separable(problem, Search(gap=GAP, deadline=Deadline(limit_s)))
    answer = {"options": len(rows), "solve_s": time.perf_counter() - began, "bound_s": None}
    if found.chosen is None:
        infeasible = found.stop is StopReason.INFEASIBLE
        return answer | {"status": "infeasible" if infeasible else "limit", "optimum_s": known_s}
    optimum_s = snapshot.mean_s(rows[found.chosen])
    if known_s is not None:
        optimum_s = min(optimum_s, known_s)
    bound_s = min(optimum_s, -found.bound / problem.jobs)
    status = "proven" if optimum_s - bound_s <= GAP * optimum_s else "limit"
    return answer | {"status": status, "optimum_s": optimum_s, "bound_s": bound_s}


def excesses(lines: pd.DataFrame, share: float, rule: str) -> Floats:
    """Return the relative excess over the optimum of every round that has one, at one budget."""
    own = lines[lines.share == share]
    found = own[f"{rule}_s"].astype(float) / own.optimum_s.astype(float) - 1.0
    return np.asarray(found.dropna(), dtype=float)


def table(lines: pd.DataFrame) -> str:
    """Return quantiles of the excess, in percent of the optimum, by budget and rule; Markdown.

    *Unproven* counts rounds whose optimum is not proven to the gap; in brackets the most that one
    of them may lie above the true optimum.
    """
    rows = []
    for share, (rule, title) in product(_shares(lines), RULES.items()):
        own = lines[lines.share == share]
        open_ = own[(own.status == "limit") & own.optimum_s.notna() & own.bound_s.notna()]
        most = 100 * (open_.optimum_s / open_.bound_s - 1).max()
        unproven = f"{len(open_)} ({most:.2g})" if len(open_) else "0"
        percent = 100 * excesses(lines, share, rule)
        marks = ["–"] * 6
        if len(percent):
            quantiles = np.quantile(percent, (0, 0.25, 0.5, 0.75, 1))
            marks = [f"{each:.1f}" for each in (*quantiles, percent.mean())]
        counts = [f"{len(percent)}", f"{(own.status == 'infeasible').sum()}", unproven]
        rows.append([f"{share:.0%}", title.partition(":")[0], *counts, *marks])
    header = ["budget", "rule", "rounds", "infeasible", "unproven (%)", "lowest (%)"]
    header += ["lower quartile", "median", "upper quartile", "highest", "mean"]
    return markdown(header, rows, words=2)


def _shares(lines: pd.DataFrame) -> list[float]:
    """Return the budgets, the loosest first."""
    return sorted(lines.share.unique(), reverse=True)


def draw(lines: pd.DataFrame, folder: Folder) -> None:
    """Draw the excess over the optimum as boxes, by budget and rule.

    Boxes reach from quartile to quartile, whiskers to the last round within 1.5 times that; every
    round is a dot. The axis is logarithmic; optimal answers are drawn at its lower end.
    """
    figure = new_figure(8.4, 4.6)
    axes = figure.subplots()
    axes.set_yscale("log")
    shares = _shares(lines)
    rows = []
    for at, share in enumerate(shares):
        for index, (rule, title) in enumerate(RULES.items()):
            found = excesses(lines, share, rule)
            rows += [(f"{share:g}", rule, excess) for excess in found]
            place = at + (index - 0.5) * 0.42
            if len(found):
                _box(axes, place, np.maximum(found, GAP), index, "" if at else title)
    axes.set_xticks(range(len(shares)))
    rounds = [len(excesses(lines, share, "prices")) for share in shares]
    names = [f"{share:.0%}\n({n} rounds)" for share, n in zip(shares, rounds, strict=True)]
    axes.set_xticklabels(names, fontsize=9)
    axes.set_xlim(-0.5, len(shares) - 0.4)
    axes.set_ylim(GAP / 1.3, 4)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:g} %"))
    axes.set_ylabel("mean JCT above the exact optimum", fontsize=9)
    axes.set_xlabel("energy budget, as a share of what the full-speed greedy uses", fontsize=9)
    axes.set_title("Greedy rules against the optimum of one round", fontsize=11)
    axes.grid(visible=True, axis="y", which="major", linewidth=0.4, alpha=0.5)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8.5, frameon=False, loc="upper right", ncols=2)
    tidy(axes)
    save(figure, folder.path / "one-round-gap", ("budget", "rule", "excess"), rows)


def _box(axes: Axes, place: float, data: Floats, index: int, label: str) -> None:
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


def compare(folder: Folder, seeds: Sequence[int], budgets: Sequence[float], limit_s: float) -> None:
    """Measure all rounds at all budgets."""
    cases = [
        {"seed": seed, "share": share, "limit_s": limit_s}
        for seed, share in product(seeds, budgets)
    ]
    lines = folder.measure(cases, measure, final)
    folder.write(table(lines))
    draw(lines, folder)


command = study(
    "one-round",
    __doc__,
    compare,
    [
        seeds("0-99"),
        numbers(
            "--budgets", "budgets", "1.0,0.8,0.7,0.6", "Shares of the full-speed greedy's energy."
        ),
        limit(10.0, "Seconds for each optimum."),
    ],
)
