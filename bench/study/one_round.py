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
from typing import Any, NamedTuple

import numpy as np
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
from ronda.bench.study.harness import Folder, Line, limit, markdown, numbers, seeds, study
from ronda.instances import generate
from ronda.instances.arrays import Floats
from ronda.instances.base import Record
from ronda.instances.plan import StopReason
from ronda.solvers.contract import Deadline
from ronda.solvers.prices.engine import solve_separable

GAP = 1e-4
"""Relative gap to which optima are proven, and the least excess that the picture tells apart."""

FEWEST, MOST = 20, 400
GPUS_PER_JOB = (1.6, 3.2)
"""Of the clusters, in turn."""

RULES = {
    "relative": "relative: (dJCT/JCT) / (dE/E)",
    "prices": "two prices: dJCT / (dE/budget + dn/N)",
}


class Case(Record, frozen=True, kw_only=True):
    """A generated round, and its energy budget as a share of the full-speed greedy's energy."""

    seed: int
    share: float
    limit_s: float


class Answer(Line, frozen=True, kw_only=True):
    """One round at one budget.

    Attributes
    ----------
    jobs, gpus, options
        Size of the round; options that the optimum had to choose from.
    status
        "proven" to the gap, "limit" if time was up before, or "infeasible": the budget does not
        serve all jobs together.
    optimum_s, bound_s
        Mean JCT of the best plan found, and the bound below every plan's.
    relative_s, prices_s
        Mean JCT by the two rules; None if not even the smallest options are within the budget.
    solve_s, greedy_s
        Seconds for the optimum, and for both rules together.
    """

    case: Case
    jobs: int
    gpus: int
    options: int
    status: str
    optimum_s: float | None = None
    bound_s: float | None = None
    relative_s: float | None = None
    prices_s: float | None = None
    solve_s: float = 0.0
    greedy_s: float = 0.0

    @property
    def final(self) -> bool:
        """Whether there is a proof."""
        return self.status != "limit"

    def excess(self, rule: str) -> float | None:
        """Return by how much a rule's mean JCT exceeds the optimum, relative to it."""
        found: float | None = getattr(self, f"{rule}_s")
        if found is None or self.optimum_s is None:
            return None
        return found / self.optimum_s - 1.0


def size(seed: int) -> tuple[int, int]:
    """Return the jobs (20 to 400, even in logarithm) and the GPUs of a round."""
    rng = np.random.default_rng([seed, 20230413])
    jobs = round(FEWEST * (MOST / FEWEST) ** float(rng.random()))
    return jobs, 8 * -(-round(jobs * GPUS_PER_JOB[seed % 2]) // 8)


class _Question(NamedTuple):
    snapshot: EnergySnapshot
    full_speed_j: float


@lru_cache(maxsize=1)
def _question(seed: int) -> _Question:
    jobs, gpus = size(seed)
    snapshot = energy_snapshot(generate.round(jobs, gpus, "loose", seed))
    return _Question(snapshot, full_speed_j(snapshot))


def measure(case: Case) -> Answer:
    """Compare the rules with the optimum."""
    jobs, gpus = size(case.seed)
    question = _question(case.seed)
    snapshot, budget_j = question.snapshot, case.share * question.full_speed_j
    began = time.perf_counter()
    rules = [by_relative_rule(snapshot, budget_j), by_two_prices(snapshot, budget_j)]
    greedy_s = time.perf_counter() - began
    means = [None if chosen is None else snapshot.mean_s(chosen) for chosen in rules]
    known_s = min((mean for mean in means if mean is not None), default=None)
    return Answer(
        case=case,
        jobs=jobs,
        gpus=gpus,
        relative_s=means[0],
        prices_s=means[1],
        greedy_s=greedy_s,
        **_exact(snapshot, budget_j, case.limit_s, known_s),
    )


def _exact(
    snapshot: EnergySnapshot, budget_j: float, limit_s: float, known_s: float | None
) -> dict[str, Any]:
    """Solve the question to the gap; the answer is no worse than `known_s` of a rule."""
    problem, rows = exact_problem(snapshot, budget_j)
    began = time.perf_counter()
    found = solve_separable(problem, gap=GAP, deadline=Deadline(limit_s))
    answer: dict[str, Any] = {"options": len(rows), "solve_s": time.perf_counter() - began}
    if found.chosen is None:
        infeasible = found.stop is StopReason.INFEASIBLE
        return answer | {"status": "infeasible" if infeasible else "limit", "optimum_s": known_s}
    optimum_s = snapshot.mean_s(rows[found.chosen])
    if known_s is not None:
        optimum_s = min(optimum_s, known_s)
    bound_s = min(optimum_s, -found.bound / problem.jobs)
    status = "proven" if optimum_s - bound_s <= GAP * optimum_s else "limit"
    return answer | {"status": status, "optimum_s": optimum_s, "bound_s": bound_s}


def excesses(lines: Sequence[Answer], share: float, rule: str) -> list[float]:
    """Return the relative excess over the optimum of every round that has one, at one budget."""
    found = [line.excess(rule) for line in lines if line.case.share == share]
    return [excess for excess in found if excess is not None]


def table(lines: Sequence[Answer]) -> str:
    """Return quantiles of the excess, in percent of the optimum, by budget and rule; Markdown.

    *Unproven* counts rounds whose optimum is not proven to the gap; in brackets the most that one
    of them may lie above the true optimum.
    """
    rows = []
    for share, (rule, title) in product(_shares(lines), RULES.items()):
        own = [line for line in lines if line.case.share == share]
        loose = [
            100 * (line.optimum_s / line.bound_s - 1)
            for line in own
            if not line.final and line.optimum_s and line.bound_s
        ]
        percent = 100 * np.array(excesses(lines, share, rule))
        marks = ["–"] * 6
        if len(percent):
            quantiles = np.quantile(percent, (0, 0.25, 0.5, 0.75, 1))
            marks = [f"{each:.1f}" for each in (*quantiles, percent.mean())]
        unproven = f"{len(loose)} ({max(loose):.2g})" if loose else "0"
        infeasible = sum(line.status == "infeasible" for line in own)
        counts = [f"{len(percent)}", f"{infeasible}", unproven]
        rows.append([f"{share:.0%}", title.partition(":")[0], *counts, *marks])
    header = ["budget", "rule", "rounds", "infeasible", "unproven (%)", "lowest (%)"]
    header += ["lower quartile", "median", "upper quartile", "highest", "mean"]
    return markdown(header, rows, words=2)


def _shares(lines: Sequence[Answer]) -> list[float]:
    """Return the budgets, the loosest first."""
    return sorted({line.case.share for line in lines}, reverse=True)


def draw(lines: Sequence[Answer], folder: Folder) -> None:
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
            if found:
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
    cases = [Case(seed=s, share=share, limit_s=limit_s) for s, share in product(seeds, budgets)]
    lines = folder.measure(cases, measure, Answer)
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
