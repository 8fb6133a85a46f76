"""Distributions: the share of jobs, or of decisions, that a time suffices for."""

from collections.abc import Sequence

import numpy as np

from ronda.bench.figures.chart import Axis, Marks, Numbers, Panel, Scale


def within(name: str, index: int, values: Numbers, count: int, told: str = "") -> Marks:
    """Return the share of `count` that is within each of (n,) values, rising from 0."""
    x = np.sort(np.asarray(values, dtype=float))
    share = np.arange(len(x) + 1) / max(count, 1)
    x, share = np.append(x[:1], x), share[0 if len(x) else 1 :]
    return Marks("step", x, share, name, index, width=2.0, told=told)


def distribution(lines: Sequence[Marks], x: str, y: str) -> Panel:
    """Return the panel of `within`, on a logarithmic axis where values differ much."""
    positive = [value for line in lines for value in line.x if value > 0]
    scale: Scale = "log" if positive and max(positive) > 20 * min(positive) else "linear"
    share = Axis(y, ends=(0.0, 1.02), percent=True)
    return Panel(lines, Axis(x, scale), share)
