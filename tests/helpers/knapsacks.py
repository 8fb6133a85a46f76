"""Multidimensional knapsacks as Pyomo models."""

import numpy as np
import pyomo.environ as pyo


def knapsack(items=30, rows=4, seed=1, *, offset=0.0):
    """Return a knapsack whose rows each hold half of the items, hard enough to need a search.

    One of 150 items and 12 rows HiGHS does not solve in seconds.
    """
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 1000, (rows, items))
    worth = size.mean(axis=0) + 500 * rng.random(items)
    model = pyo.ConcreteModel("knapsack")
    model.take = pyo.Var(range(items), domain=pyo.Binary)
    model.room = pyo.Constraint(
        range(rows),
        rule=lambda m, r: (
            sum(int(size[r, i]) * m.take[i] for i in range(items)) <= int(size[r].sum() // 2)
        ),
    )
    model.worth = pyo.Objective(
        expr=offset + sum(float(worth[i]) * model.take[i] for i in range(items)),
        sense=pyo.maximize,
    )
    return model
