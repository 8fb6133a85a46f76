"""Tiny models of whole numbers whose optimum is known exactly: all points, in rationals."""

from fractions import Fraction
from itertools import product

import numpy as np

from ronda.solvers.exact.linear_form import LinearForm


def form_from(cost, rows, lower, upper, most, *, maximize=True):
    """Return a model of variables from 0 to (n,) `most`, with (m, n) rows between their limits."""
    rows = np.array(rows, dtype=float)
    at, column = np.nonzero(rows)
    return LinearForm(
        columns=tuple(f"x{k}" for k in range(len(cost))),
        rows=tuple(f"r{i}" for i in range(len(rows))),
        maximize=maximize,
        cost=np.array(cost, dtype=float),
        offset=0.0,
        lower=np.zeros(len(cost)),
        upper=np.array(most, dtype=float),
        integer=np.ones(len(cost), dtype=bool),
        start=np.searchsorted(at, np.arange(len(rows) + 1)).astype(np.int32),
        index=column.astype(np.int32),
        value=rows[at, column],
        row_lower=np.array(lower, dtype=float),
        row_upper=np.array(upper, dtype=float),
    )


def random_form(seed, *, whole=False):
    """Return a model of 3 to 5 variables that has a solution, and (m, n) its rows.

    Its numbers are whole, beside limits that are not, or of ten orders of magnitude.
    """
    rng = np.random.default_rng([seed, 41, whole])
    n, m = int(rng.integers(3, 6)), int(rng.integers(1, 4))

    def drawn(size):
        if whole:
            return rng.integers(-3, 10, size).astype(float)
        signs = rng.choice([1.0, 1.0, 1.0, -1.0], size)
        return signs * np.round(rng.uniform(1, 10, size), 3) * 10.0 ** rng.integers(-5, 6, size)

    most = rng.integers(1, 4, n)
    rows, cost = drawn((m, n)) * (rng.random((m, n)) < 0.8), drawn(n)
    has = rows @ rng.integers(0, most + 1)
    slack = np.abs(rows).max(axis=1) * rng.uniform(0.0, 1.0, (2, m)) * rng.choice([1, 1e-3], m)
    kind = rng.integers(0, 3, m)  # from above, from below, from both sides
    lower = np.where(kind == 0, -np.inf, has - slack[0])
    upper = np.where(kind == 1, np.inf, has + slack[1])
    return form_from(cost, rows, lower, upper, most, maximize=bool(rng.random() < 0.5)), rows


def best_of(form, rows):
    """Return the optimum of a model, exactly; None if it has no solution."""
    exact = [[Fraction(a) for a in row] for row in rows.tolist()]
    limits = list(zip(form.row_lower.tolist(), form.row_upper.tolist(), strict=True))

    def kept(x):
        sums = [sum(a * k for a, k in zip(row, x, strict=True)) for row in exact]
        return all(low <= s <= high for s, (low, high) in zip(sums, limits, strict=True))

    cost = [Fraction(c) for c in form.cost.tolist()]
    points = product(*(range(int(most) + 1) for most in form.upper))
    worth = [sum(c * k for c, k in zip(cost, x, strict=True)) for x in points if kept(x)]
    if not worth:
        return None
    return max(worth) if form.maximize else min(worth)
