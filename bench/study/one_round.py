"""Greedy rules against the exact optimum of one round with an energy budget.

Over generated rounds, the mean JCT by PowerFlow's relative rule and by the two-price rule beside
the optimum of the same question, which the price engine certifies:

    min (1/J) sum_k left_k x_k
    s.t. sum_{k of job j} x_k = 1                     every job is served
         sum_{k in pool p} GPUs_k x_k <= GPUs of p
         sum_k E_k x_k <= budget,   E_k = power_k left_k

left_k are seconds from now until the job is complete if it keeps option k, its pause for a start
or restart included. There are no arrivals, no idle power and no nodes: rules are compared, not
schedules. Jobs choose among powers of two of GPUs and all clock levels. The budget is a share of
what the full-speed greedy without an eye for energy uses. A round whose optimum was not proven in
time is computed again by the next call.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ronda.bench.figures.style import box, colour, new_figure, save, tidy
from ronda.bench.study.harness import Folder, limit, markdown, numbers, seeds, study
from ronda.formulations.allocation.limits import Limits
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.clock import Deadline
from ronda.formulations.objectives.outlook import horizon_s, outlook
from ronda.formulations.options.build import build
from ronda.formulations.options.table import OptionTable, unbeaten
from ronda.instances import generate
from ronda.instances.arrays import Floats, Rows
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.instances.round import Round
from ronda.solvers.greedy.marginal import Ladder, climb, ladder, priced, relative
from ronda.solvers.prices import Search
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


@dataclass(frozen=True, slots=True)
class EnergySnapshot:
    """A round's options and the steps among them; what each takes until the job is complete.

    (K,) `left_s` and `energy_j`, and (P,) `gpus` of each pool.
    """

    table: OptionTable
    ladder: Ladder
    left_s: Floats
    energy_j: Floats
    gpus: Floats

    def mean_s(self, chosen: Rows) -> float:
        """Return the mean seconds until completion of (J,) rows."""
        return float(self.left_s[chosen].mean())

    def total_j(self, chosen: Rows) -> float:
        """Return the joules of (J,) rows."""
        return float(self.energy_j[chosen].sum())

    def limits(self, budget_j: float | None) -> Limits:
        """Return the capacities: GPUs of each pool, and joules unless the budget is None."""
        names = [f"gpus[{pool.name}]" for pool in self.table.pools]
        demand = [np.where(self.table.pool == p, self.table.gpus, 0.0) for p in range(len(names))]
        capacity = self.gpus
        if budget_j is not None:
            names.append("joules")
            demand.append(self.energy_j)
            capacity = np.append(capacity, budget_j)
        return Limits(tuple(names), capacity, np.array(demand))


def energy_snapshot(round: Round) -> EnergySnapshot:
    """Return the question that a round asks; an InputError if not all jobs can be served."""
    table = build(round, prune=False, mind_power=False)
    left_s = outlook(round, table, horizon_s(round)).left_s
    energy_j = table.power_w * left_s
    steps = ladder(table, left_s, energy_j)
    gpus = np.array([float(pool.gpus) for pool in table.pools])
    if (steps.start < 0).any():
        job = table.jobs[int(np.argmin(steps.start))].job.id
        raise InputError(f"round {round.name}: job {job}", "no option", "at least one")
    least = np.bincount(table.pool[steps.start], table.gpus[steps.start], len(gpus))
    if (least > gpus).any():
        found = f"{least.sum():.0f} GPUs needed, {gpus.sum():.0f} there"
        raise InputError(f"round {round.name}", found, "room for all jobs together")
    return EnergySnapshot(table, steps, left_s, energy_j, gpus)


def full_speed_j(case: EnergySnapshot) -> float:
    """Return the joules of the greedy that minds GPUs only: full clock, most seconds per GPU."""
    table = case.table
    top = np.zeros(len(table.jobs))
    np.maximum.at(top, table.job, table.clock)
    full = np.flatnonzero(table.clock == top[table.job])
    order = full[np.lexsort((table.gpus[full], table.job[full]))]
    _, first = np.unique(table.job[order], return_index=True)
    worth = priced(case.ladder.up, -case.left_s, table.gpus.astype(float))
    worth[1] = -np.inf
    return case.total_j(climb(case.limits(None), order[first], case.ladder.up, worth))


def by_relative_rule(case: EnergySnapshot, budget_j: float) -> Rows | None:
    """Return (J,) rows of PowerFlow's rule; None if jobs cannot even start within the budget."""
    worth = relative(case.ladder.up, case.left_s, case.energy_j)
    return _climbed(case, budget_j, worth)


def by_two_prices(case: EnergySnapshot, budget_j: float) -> Rows | None:
    """Return (J,) rows of the rule dJCT / (dE / E_bud + dn / N); None if jobs cannot start."""
    cost = case.energy_j / budget_j + case.table.gpus / case.gpus[case.table.pool]
    return _climbed(case, budget_j, priced(case.ladder.up, -case.left_s, cost))


def _climbed(case: EnergySnapshot, budget_j: float, worth: Floats) -> Rows | None:
    if case.total_j(case.ladder.start) > budget_j:
        return None
    return climb(case.limits(budget_j), case.ladder.start, case.ladder.up, worth)


def exact_problem(case: EnergySnapshot, budget_j: float) -> tuple[Separable, Rows]:
    """Return the question as a separable problem, and the table's row of each of its options.

    Options that another one of the same job and pool beats in seconds, GPUs and joules are left
    out: an optimum without them exists.
    """
    table, bounds, up = case.table, case.limits(budget_j), case.ladder.up
    climbing = np.flatnonzero((up >= 0).any(axis=0))
    rows = np.unique(np.concatenate([case.ladder.start, climbing, up[up >= 0]]))
    group = table.job[rows] * len(table.pools) + table.pool[rows]
    costs = np.array([table.gpus[rows], case.energy_j[rows]], dtype=float)
    rows = rows[unbeaten(group, -case.left_s[rows], costs)]
    start = np.searchsorted(table.job[rows], np.arange(len(table.jobs) + 1))
    value, use = -case.left_s[rows], bounds.demand[:, rows]
    return Separable.without_blocks(
        start, value, use, bounds.capacity, bounds.names, must=True
    ), rows


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

    A rule's mean JCT is None if not even the smallest options are within the budget. The status
    is "proven" to the gap, "limit" if time was up before, or "infeasible" if the budget does not
    serve all jobs together.
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
    """Draw the excess over the optimum as boxes, by budget and rule; every round is a dot.

    The axis is logarithmic; optimal answers are drawn at its lower end.
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
    axes.set_title("Greedy rules against the optimum of one round", fontsize=11)
    axes.yaxis.grid(visible=True, which="major", linewidth=0.4, alpha=0.5)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8.5, frameon=False, loc="upper right", ncols=2)
    budget = "energy budget, as a share of what the full-speed greedy uses"
    tidy(axes, budget, "mean JCT above the exact optimum")
    save(figure, folder.path / "one-round-gap", ("budget", "rule", "excess"), rows)


def _box(axes: Axes, place: float, data: Floats, index: int, label: str) -> None:
    """Draw one box, its dots, and its median in words."""
    box(axes, place, data, index, width=0.24, label=label or None)
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
        numbers("--budgets", "1.0,0.8,0.7,0.6", "Shares of the full-speed greedy's energy."),
        limit(10.0, "Seconds for each optimum."),
    ],
)
