"""A row of a table: its paired runs, their figures and ratios, and the work that they gave up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, isfinite, isinf, isnan, nan
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from ronda.bench.figures.columns import COLUMNS, METRICS, Column
from ronda.bench.runs.results import Result
from ronda.bench.statistics import (
    Interval,
    geometric_mean,
    paired_ratio,
    ratio_interval,
    ratio_of_means,
)
from ronda.bench.suites.cells import FIXED
from ronda.bench.suites.suite import Ratio
from ronda.instances.base import Floats
from ronda.instances.tables.table import Best, Numbered

KINDS = ("spread", "base", "interval", "range", "worst", "lost")
"""A column's statistics other than the mean; all but the spread concern the ratio to the base."""

SIZES = "sizes"
"""The column with the source of the policies' job sizes."""

UNKNOWN = Interval(nan, nan, nan)

GIVEN_UP = {
    "missed_sweeps": ("sweeps", "sweeps without their best"),
    "discarded_jobs": ("jobs", "trials given up"),
    "unrun_jobs": ("jobs", "jobs that could never run"),
    "unfinished": ("jobs", "jobs unfinished"),
}
"""Counts of work that no mean of a run includes: the count of the total, and the words."""


MEANS: dict[str, tuple[Callable[..., Floats], Callable[..., Any]]] = {
    "geometric": (paired_ratio, geometric_mean),
    "of means": (ratio_of_means, np.mean),
}
"""The means of `Ratio`: the ratio of units to those of the base, and the mean within a unit."""


class Pair(NamedTuple):
    """A run, the run that it is compared with, and its values on the axes of the suite."""

    run: Result
    base: Result | None
    at: Mapping[str, str]


class TableColumn(NamedTuple):
    """A column: its metric (None: `SIZES`) and its statistic (empty: the mean)."""

    metric: Column | None
    kind: str = ""

    def title(self, base: Mapping[str, str]) -> str:
        """Return the heading."""
        if self.metric is None:
            return SIZES
        short = self.metric.title.partition(" (")[0]
        if self.kind in {"worst", "lost"}:
            return f"{short}, {self.kind}"
        return f"{short} / {', '.join(base.values())}" if self.is_ratio else self.metric.title

    @property
    def is_ratio(self) -> bool:
        """Whether the column shows a ratio to the base."""
        return self.kind in KINDS[1:]

    def cell(self, found: Interval, *, best: bool = False) -> Numbered:
        """Return the cell with its numbers by name (METRIC or METRIC/KIND) and the interval."""
        assert self.metric is not None
        (value, low, high), name = found, self.metric.key
        if not self.is_ratio:
            numbers = {name: value} | ({f"{name}/spread": high - value} if self.kind else {})
            more = "" if isnan(high) else f" ± {self.metric.write(high - value)}"
            text = self.metric.write(value) + more if isfinite(value) else "–"
            return Best(text, numbers) if best else Numbered(text, numbers)
        name = f"{name}/{self.kind}"
        numbers = {name: value}
        ends = {"interval": f" [{low:.3f}, {high:.3f}]", "range": f" ({low:.2f}-{high:.2f})"}
        if self.kind in ends:
            numbers |= {f"{name}/low": low, f"{name}/high": high}
        if not isfinite(value):
            return Numbered("–" if isnan(value) else "∞", numbers)
        if self.kind == "lost":
            return Numbered(f"{value:.0f}", numbers)
        return Numbered(f"{value:.3f}" + ("" if isnan(low) else ends.get(self.kind, "")), numbers)


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: the runs at one value of each of the row's axes."""

    at: tuple[str, ...]
    pairs: tuple[Pair, ...]
    ratio: Ratio | None = None

    @property
    def note(self) -> str:
        """The failures of the row's runs, or the rules that a record breaks; empty if none."""
        states = [str(run.status) for run in self.runs if not run.ok]
        states += ["with violations"] * sum(bool(run.ok and run.fault) for run in self.runs)
        of = len(self.pairs)
        words = [f"{states.count(s)} of {of} {s}" for s in dict.fromkeys(states)]
        broken = sum(run.metrics.get("broken_rules", 0) for run in self.runs)
        return ", ".join(words + [f"rules broken: {broken:,}"] * bool(broken))

    @property
    def runs(self) -> list[Result]:
        """The row's own runs."""
        return [pair.run for pair in self.pairs]

    @property
    def resampled(self) -> bool:
        """Whether all runs are on resampled workloads."""
        return all(run.variant.resample is not None for run in self.runs)

    def figures(self, metric: str, side: int = 0) -> Floats:
        """Return a figure of each run, or with `side` 1 of its partner, shape (R,); NaN if unknown.

        The figure of a failed run is infinite, as if the run never finished.
        """
        runs = [pair.base if side else pair.run for pair in self.pairs]
        return np.array([inf if run and run.fault else _figure(run, metric) for run in runs])

    def value(self, shown: TableColumn) -> Interval:
        """Return the value of a column, with the ends of its interval, range or spread."""
        assert shown.metric is not None
        if not shown.is_ratio:
            known = self.known(shown.metric.key)
            value = float(known.mean()) if len(known) else nan
            spread = len(known) > 1 and shown.kind and isfinite(value)
            half = float(known.std(ddof=1)) if spread else nan
            return Interval(value, value - half, value + half)
        assert self.ratio is not None
        own, base = (self.figures(shown.metric.key, side) for side in (0, 1))
        both = ~np.isnan(own + base)
        own, base = (np.maximum(side[both], self.ratio.floor) for side in (own, base))
        if not len(base) or not (np.isfinite(base) & (base > 0)).all():
            return UNKNOWN
        each = own / base
        if shown.kind in {"worst", "lost"}:
            lost = float((each > self.ratio.lost_above).sum())
            return Interval(lost if shown.kind == "lost" else float(each.max()), nan, nan)
        if isinf(each.max()):
            return Interval(inf, nan, nan)
        # Units are instances, or for one instance its changes, or for one workload or change its
        # seeds: runs on one instance are not independent problems.
        at = [pair.at for pair, asked in zip(self.pairs, both, strict=True) if asked]
        rest = tuple(axis for axis in dict.fromkeys(chain(*at)) if axis not in FIXED)
        for axes in ((FIXED[0],), rest, ("seed",)):
            stands = [tuple(each.get(axis, "") for axis in axes) for each in at]
            if len({*stands}) > 1:
                break
        places = {unit: k for k, unit in enumerate(dict.fromkeys(stands))}
        units, many = np.array([places[unit] for unit in stands]), axes != ("seed",)
        statistic, mean = MEANS[self.ratio.mean]
        sides = ([mean(side[units == k]) for k in np.unique(units)] for side in (own, base))
        own, base = map(np.array, sides)
        if shown.kind != "interval":
            return Interval(float(statistic(own, base)), float(each.min()), float(each.max()))
        return ratio_interval(statistic, own, base, drawn=self.resampled and not many)

    @property
    def sizes(self) -> str:
        """The source of the policy's job sizes."""
        known = (run.metrics.get("knowledge") for run in self.runs if run.ok)
        return str(next(known, None) or "–")

    def known(self, metric: str) -> Floats:
        """Return the figures that enter a mean; a failed run's is infinite if less is better.

        The mean of counts and shares covers only the runs that ended.
        """
        best = metric in METRICS and METRICS[metric].best
        plain = np.array([_figure(run, metric) for run in self.runs])
        found = self.figures(metric) if best else plain
        return found[~np.isnan(found)]

    def means(self) -> dict[str, float]:
        """Return the means of all figures of the row's runs, by metric."""
        metrics = (run.metrics.items() for run in self.runs if run.ok)
        names = dict.fromkeys(n for each in metrics for n, v in each if isinstance(v, int | float))
        names |= dict.fromkeys(column.key for column in COLUMNS if column.best and self.note)
        found = {name: self.known(name) for name in names}
        return {name: float(known.mean()) for name, known in found.items() if len(known)}


def _figure(run: Result | None, metric: str) -> float:
    found = run.metrics.get(metric, getattr(run, metric, None)) if run and run.ok else None
    return nan if found is None else float(found)


def given_up(runs: Iterable[Result]) -> str:
    """Say how many jobs and sweeps the runs gave up, which no mean includes; empty if none."""
    told, words = [run.metrics for run in runs], []
    for name, (of, what) in GIVEN_UP.items():
        if count := sum(metrics.get(name, 0) for metrics in told):
            words.append(f"{count:,} of {sum(metrics.get(of, 0) for metrics in told):,} {what}")
    return ", ".join(words)


def least_mean_jct_s(groups: Iterable[Iterable[Result]]) -> float:
    """Return a lower bound on the mean JCTs of groups of runs; 0 if none is known.

    The bound of a group is the mean of the bounds of its workloads, without duplicates; a run that
    gave up jobs has no bound. Groups may have different workloads, for example in a comparison that
    was stopped. Their bounds differ, and the least of them holds for all.
    """
    known, members = dict[str, float](), [list(group) for group in groups]
    for run in chain(*members):
        if run.ok:
            bound_s = float(run.metrics.get("bound_mean_jct_s") or 0.0)
            known[run.fingerprint] = min(bound_s, known.get(run.fingerprint, inf))
    workloads = [{run.fingerprint for run in group} for group in members]
    means = [fmean(known[each] for each in some) for some in workloads if some <= known.keys()]
    return min(means, default=0.0) if all(known.values()) else 0.0


def partner(run: Result, others: Sequence[Result]) -> Result | None:
    """Return the partner of a run among the runs that it may be compared with.

    It has the same seed, or is the only candidate and its instance depends on no seed.
    """
    same = [other for other in others if other.seed == run.seed]
    alone = others if len(others) == 1 and not others[0].variant.draws else ()
    return next(iter([*same, *alone]), None)
