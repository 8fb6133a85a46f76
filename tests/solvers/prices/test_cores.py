"""Cores: the gap that was asked for is proven, whatever the MILP of a core stops at."""

import numpy as np
import pytest

from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable
from ronda.instances.plan import closes
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import solve_separable


def problem_of(seed):
    """Return jobs of three options that share three resources, of which one may be exchanged.

    What is taken in any amount is not decided by labels.
    """
    rng = np.random.default_rng(seed)
    jobs = int(rng.integers(20, 60))
    options = 3 * jobs
    return Separable(
        start=np.arange(0, options + 1, 3),
        value=rng.uniform(1, 10, options),
        use=Uses.of(rng.uniform(1, 10, (3, options))),
        capacity=np.full(3, rng.uniform(0.3, 0.6) * 2.5 * jobs),
        names=("a", "b", "c"),
        must=np.zeros(jobs, dtype=bool),
        block_value=np.zeros(1),
        block_use=np.array([[-1.0], [1.0], [0.0]]),
        block_count=np.array([5.0]),
        block_integer=np.array([False]),
    )


@pytest.mark.parametrize("gap", [1e-4, pytest.param(1e-3, marks=pytest.mark.soak)])
def test_the_gap_is_that_of_the_answer(gap):
    """Of the first eight problems, and of three whose dual bound is far from the answer."""
    for seed in (*range(8), 19, 50, 53):
        answer = solve_separable(problem_of(seed), Search(gap=gap))
        assert answer.search == "cores"
        assert closes(answer.bound, answer.objective, gap), seed
