"""The changes from one folder of results to another, beyond noise: ``ronda bench diff``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ronda.bench.figures.columns import METRICS
from ronda.bench.runs.results import Result
from ronda.bench.statistics import Interval, paired_ratio, ratio_interval
from ronda.instances.base import Floats
from ronda.instances.tables.table import Best, Report, Table

JUDGED = ("mean_jct_s", "p99_jct_s", "makespan_s", "energy_j", "median_solve_s")
"""The compared figures; for each, less is better."""

TIMED = "median_solve_s"
"""The figure that also depends on the machine and its load."""

Pair = tuple[Result, Result]
"""A run before and after."""

Sides = tuple[list[Result], list[Result]]
"""Runs before and after."""


class FigureChange(NamedTuple):
    """A figure over pairs of runs: the ratio of after to before, and a verdict.

    ``same``: all pairs are equal; ``noise``: the interval contains 1, or a difference of times
    proves nothing; ``better`` or ``worse``; ``–``: the figure is unknown on a side.
    """

    ratio: Interval
    verdict: str

    @property
    def text(self) -> str:
        """The cell of the table."""
        value, low, high = self.ratio
        if self.verdict in {"same", "–"}:
            return self.verdict
        ends = "" if isnan(low) else f" [{low:.3f}, {high:.3f}]"
        beyond = self.verdict != "noise"
        return Best(f"{value:.3f}{ends} {self.verdict}") if beyond else f"{value:.3f}{ends}"


def change(before: Floats, after: Floats, *, timed: bool = False) -> FigureChange:
    """Compare a figure of pairs of runs; `before` and `after` have shape (S,).

    One pair has no interval. A schedule is reproducible, so its difference counts even without an
    interval; a difference of times (`timed`) does not.
    """
    known = (before > 0) & (after > 0)
    if not known.any():
        return FigureChange(Interval(nan, nan, nan), "–")
    before, after = before[known], after[known]
    if np.allclose(after, before, rtol=1e-9, atol=0.0):  # equal except for rounding
        return FigureChange(Interval(1.0, 1.0, 1.0), "same")
    ratio = ratio_interval(paired_ratio, after, before)
    if ratio.low <= 1.0 <= ratio.high or (timed and isnan(ratio.low)):
        return FigureChange(ratio, "noise")
    return FigureChange(ratio, "worse" if ratio.value > 1.0 else "better")


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences in words, and the figures of each policy on each instance over its pairs.

    `how` describes how the runs were made, `new` names runs that fail only now, and `gone` names
    runs that no longer fail. `rows` are tuples (instance, policy, pairs, changes by figure).
    """

    how: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    rows: tuple[tuple[str, str, int, dict[str, FigureChange]], ...]

    @property
    def worse(self) -> bool:
        """Whether a run newly fails, or a figure is worse beyond noise."""
        verdicts = [each.verdict for *_, changes in self.rows for each in changes.values()]
        return bool(self.new) or "worse" in verdicts

    def report(self) -> Report:
        """Return differences in how runs were made, new and fixed failures, and the figures."""
        rows = [
            {"instance": name, "policy": policy, "pairs": pairs}
            | {each: c.ratio._asdict() | {"verdict": c.verdict} for each, c in changes.items()}
            for name, policy, pairs, changes in self.rows
        ]
        fields = {name: getattr(self, name) for name in ("how", "new", "gone", "worse")}
        verdicts = [each.verdict for *_, changes in self.rows for each in changes.values()]
        parts: list[str | Table] = [
            *self.how,
            *(f"fails now: {title}" for title in self.new),
            *(f"fails no more: {title}" for title in self.gone),
            self.table(),
            f"{verdicts.count('worse')} figures are worse and {verdicts.count('better')} better "
            f"beyond noise; {len(self.new)} runs fail now that did not",
        ]
        return Report(fields | {"rows": rows}, parts, code=int(self.worse))

    def table(self) -> Table:
        """Return the table of figures."""
        rows = (
            {"instance": name, "policy": policy, "pairs": pairs}
            | {METRICS[each].title: changes[each].text for each in JUDGED}
            for name, policy, pairs, changes in self.rows
        )
        verdicts = [each for *_, changes in self.rows for each in changes.values()]
        judged = sum(not isnan(each.ratio.low) and each.verdict != "same" for each in verdicts)
        notes = (
            "after / before, the geometric mean over pairs of the same instance, changes and seed",
            "[]: 95 % interval by Student's t on logarithms; better or worse: 1 is outside",
            f"of {judged} intervals, {judged / 20:.2g} would leave 1 out by chance",
        )
        return Table.of("", rows, notes)


def difference(before: Sequence[Result], after: Sequence[Result]) -> Difference:
    """Compare results run by run, with the same instance, changes, policy as written, and seed.

    If several runs match, those with the same limits and parameters are paired.
    """
    met, left = _met(before, after)
    pairs = [(a, b) for a, b in met if a.fingerprint == b.fingerprint]
    how = [*_told(before, after), *_configured(pairs)]
    others = {a.instance: None for a, b in met if a.fingerprint != b.fingerprint}
    how += [f"{name}: another instance by now, not compared" for name in others]
    for k, where in enumerate(("before", "after")):
        alone = [run.title for group in left if not group[1 - k] for run in group[k]]
        how += [f"{len(alone)} runs only {where}, such as {alone[0]}"] if alone else []
    several = [a[0].title for a, b in left if a and b]
    how += [f"several runs alike, not compared: {title}" for title in several]
    failing = [(b.title, a.fault, b.fault) for a, b in pairs]
    both = sum(bool(a and b) for _, a, b in failing)
    how += [f"{both} runs fail before and after"] if both else []
    return Difference(
        tuple(how),
        tuple(f"{title}: {b}" for title, a, b in failing if b and not a),
        tuple(f"{title}: {a}" for title, a, b in failing if a and not b),
        tuple(_rows(pairs)),
    )


def _met(before: Sequence[Result], after: Sequence[Result]) -> tuple[list[Pair], list[Sides]]:
    """Return the pairs of runs, and groups of similar runs without a pair.

    The runs of a pair agree in everything. If there is only one such run on each side, they may
    differ in parameters, or in limits as well.
    """
    pairs, left = list[Pair](), [(list(before), list(after))]
    for told in (3, 2, 1):
        groups: dict[bytes, Sides] = {}
        for sides in left:
            for side, runs in enumerate(sides):
                for run in runs:
                    written = run.instance, run.variant, run.label, run.seed
                    key = msgspec.json.encode((written, _limits(run), run.config)[:told])
                    groups.setdefault(key, ([], []))[side].append(run)
        pairs += [(a[0], b[0]) for a, b in groups.values() if len(a) == len(b) == 1]
        left = [(a, b) for a, b in groups.values() if not len(a) == len(b) == 1]
    return pairs, left


def _limits(run: Result) -> dict[str, Any]:
    """Return the limits of a run that affect its decisions."""
    names = ("time_limit_s", "period_s", "predictor")
    return {name: value for name in names if (value := getattr(run, name)) is not None}


def _told(before: Sequence[Result], after: Sequence[Result]) -> list[str]:
    """Return the differences in versions, machines and limits of the runs."""

    def about(run: Result) -> dict[str, Any]:
        limits = {name: getattr(run, name) for name in ("time_limit_s", "timeout_s", "memory_mib")}
        return run.versions | {"commit": run.commit, "cpu": run.host.get("cpu")} | limits

    sides = [[about(run) for run in side] for side in (before, after)]
    found = []
    for name in dict.fromkeys(name for side in sides for run in side for name in run):
        old, new = (sorted({str(run.get(name, "none")) for run in side}) for side in sides)
        if old != new:
            found.append(f"{name}: {', '.join(old)} before, {', '.join(new)} after")
    return found


def _configured(pairs: Iterable[Pair]) -> list[str]:
    """Return the parameters that differ between policies with the same label."""
    found = dict[str, None]()
    for a, b in pairs:
        for name in {**a.config, **b.config}:
            old, new = a.config.get(name, "none"), b.config.get(name, "none")
            if old != new:
                found[f"{a.label}, {name}: {old} before, {new} after"] = None
    return [*found]


def _rows(pairs: Iterable[Pair]) -> list[tuple[str, str, int, dict[str, FigureChange]]]:
    """Return the changes of each policy on each instance, for runs that ended well on both sides.

    Runs with different limits are kept apart; limits are named if there are several.
    """
    groups: dict[tuple[str, str], dict[str, list[Pair]]] = {}
    for a, b in pairs:
        if not a.fault and not b.fault:
            limits = ", ".join(f"{name} {value}" for name, value in _limits(a).items())
            groups.setdefault((a.workload, a.label), {}).setdefault(limits, []).append((a, b))
    found = []
    several = [
        (name, f"{label} ({limits})" if len(by_limits) > 1 else label, own)
        for (name, label), by_limits in groups.items()
        for limits, own in by_limits.items()
    ]
    for name, label, own in several:
        same_host = all(a.host == b.host for a, b in own)
        changes = {}
        for metric in JUDGED:
            told = [[float(run.metrics.get(metric, nan)) for run in pair] for pair in own]
            before, after = np.array(told).T
            changes[metric] = change(before, after, timed=metric == TIMED)
            if metric == TIMED and not same_host:
                changes[metric] = FigureChange(changes[metric].ratio, "noise")
        found.append((name, label, len(own), changes))
    return found
