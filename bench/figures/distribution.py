"""Distributions: the share of jobs or decisions whose time is at most a given value."""

from collections.abc import Sequence

import numpy as np

from ronda.bench.figures.chart import Axis, Marks, Numbers, Panel, Scale


def within(name: str, index: int, values: Numbers, count: int, told: str = "") -> Marks:
    """Return the share of `count` items that are at most each value, rising from 0; shape (n,)."""
    x = np.sort(np.asarray(values, dtype=float))
    share = np.arange(len(x) + 1) / max(count, 1)
    x, share = np.append(x[:1], x), share[0 if len(x) else 1 :]
    return Marks("step", x, share, name, index, width=2.0, told=told)


def distribution(lines: Sequence[Marks], x: str, y: str) -> Panel:
    """Return the panel for lines of `within`, on a logarithmic axis if values differ widely."""
    positive = [value for line in lines for value in line.x if value > 0]
    scale: Scale = "log" if positive and max(positive) > 20 * min(positive) else "linear"
    share = Axis(y, ends=(0.0, 1.02), percent=True)
    return Panel(lines, Axis(x, scale), share)
