"""All instances of a comparison in one table, with a line per policy (docs/statistics.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isinf, nan
from typing import Any

import numpy as np

from ronda.bench.figures.columns import METRICS
from ronda.bench.statistics import (
    SHIFT_S,
    Interval,
    Ranks,
    geometric_mean,
    paired_ratio,
    ranks,
    ratio_interval,
    shifted_mean,
)
from ronda.bench.suites.cells import Expanded
from ronda.bench.suites.rows import TableColumn
from ronda.bench.suites.tables import Arranged, Results, usual
from ronda.instances.base import Floats
from ronda.instances.tables.numbers import seconds
from ronda.instances.tables.table import Numbered, Report, Table

RATIO = TableColumn(METRICS["mean_jct_s"], "interval")


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean JCTs of S policies on P instances, shape (P, S); infinite with a failure."""

    labels: tuple[str, ...]
    mean_jct_s: Floats
    failed: tuple[int, ...]

    @property
    def ranks(self) -> Ranks | None:
        """The ranks of the policies; None for fewer than three."""
        return ranks(self.mean_jct_s) if len(self.labels) > 2 else None

    @property
    def tested(self) -> bool:
        """Whether there are enough instances to tell an always best policy from the last one."""
        return self.ranks is not None and self.ranks.critical < len(self.labels) - 1

    def table(self) -> Table:
        """Return the table; ratios are relative to the first policy."""
        base, placed, rows = self.mean_jct_s[:, 0], self.ranks, []
        for k, (label, failed) in enumerate(zip(self.labels, self.failed, strict=True)):
            own = self.mean_jct_s[:, k]
            ratio, mean_s = _against(own, base), shifted_mean(own)
            ends = dict(zip(("", "/low", "/high"), ratio, strict=True))
            row = {
                "policy": label,
                "instances failed": Numbered(failed, {"failed": failed}),
                "mean JCT (s)": Numbered(
                    "∞" if isinf(mean_s) else seconds(mean_s), {"mean_jct_s/shifted": mean_s}
                ),
                f"mean JCT / {self.labels[0]}": Numbered(
                    RATIO.cell(ratio), {f"mean_jct_s/base{end}": v for end, v in ends.items()}
                ),
            }
            if placed is not None:
                row["mean rank"] = Numbered(
                    f"{placed.mean[k]:.2f}", {"rank": float(placed.mean[k])}
                )
            rows.append(row)
        return Table.of(f"{len(self.mean_jct_s)} instances together", rows, self._notes(placed))

    def _notes(self, placed: Ranks | None) -> tuple[str, ...]:
        notes = [
            f"mean JCT: geometric mean over instances, {SHIFT_S:g} s added before and taken off "
            "after; ∞ with a failure",
            "[]: 95 % interval over instances, by Student's t on logarithms of ratios",
        ]
        if placed is not None and self.tested:
            notes.append(
                f"ranks: all alike with p = {placed.p:.2g} (Friedman); closer than "
                f"{placed.critical:.2f} they are not told apart (Nemenyi, 5 %)"
            )
        elif placed is not None:
            notes.append(
                f"ranks of {len(self.mean_jct_s)} instances cannot tell policies apart: the "
                f"critical difference {placed.critical:.2f} is above all (Nemenyi, 5 %)"
            )
        return tuple(notes)


def _against(own: Floats, base: Floats) -> Interval:
    """Return the ratio over instances; infinite if only the base never failed."""
    if np.isfinite(own + base).all():
        return ratio_interval(paired_ratio, own, base)
    return Interval(inf if np.isfinite(base).all() else nan, nan, nan)


def summary(found: Sequence[Arranged], results: Results) -> Summary | None:
    """Return the default tables' summary; None without two instances and two common policies.

    An instance counts once, with the geometric mean over its changes.
    """
    lines = [{line.at[-1]: line for line in each.lines(results)} for each in found]
    labels = [label for label in (lines or [{}])[0] if all(label in each for each in lines)]
    named: dict[str, list[list[float]]] = {}
    for each, own in zip(found, lines, strict=True):
        jct_s = [own[name].means().get("mean_jct_s", inf) for name in labels]
        named.setdefault(each.cells[0].case.instance, []).append(jct_s)
    if len(named) < 2 or len(labels) < 2:
        return None
    values = np.array([geometric_mean(np.array(own), axis=0) for own in named.values()])
    failed = tuple(int(count) for count in np.isinf(values).sum(axis=0))
    return Summary(tuple(labels), values, failed)


def comparison_report(
    arranged: Arranged | None, expanded: Expanded, results: Results
) -> tuple[Report, Summary | None]:
    """Return the suite's own table, or the default tables and the summary of all instances."""
    if arranged is not None:
        return Report({"rows": arranged.fields(results)}, [arranged.table(results)]), None
    found = usual(expanded, results)
    fields: dict[str, Any] = {"instances": [each.about(results) for each in found]}
    tables, together = [each.table(results) for each in found], summary(found, results)
    if together is not None:
        tables.append(together.table())
        fields["together"] = [dict(row) for row in tables[-1].records]
    return Report(fields, tables), together
