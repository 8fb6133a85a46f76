"""Small cores by labels: all answers within a shortfall of the dual bound."""

import itertools

import numpy as np
import pytest

from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable
from ronda.solvers.prices import core
from ronda.solvers.prices.core import best_within
from ronda.solvers.prices.dual import Jobs, bound_at


def problem_of(seed):
    """Return a small problem with one to three resources and perhaps a kind of block."""
    rng = np.random.default_rng(seed)
    jobs, resources, blocks = int(rng.integers(1, 6)), int(rng.integers(1, 4)), seed % 2
    counts = rng.integers(0, 4, jobs)
    rows = int(counts.sum())
    use = rng.integers(0, 5, (resources, rows)).astype(float)
    if seed % 3 == 0:
        use[-1] *= rng.uniform(0.5, 1.5, rows)
    block_use = rng.integers(-4, 3, (resources, blocks)).astype(float)
    return Separable(
        start=np.concatenate([[0], np.cumsum(counts)]),
        value=rng.uniform(0.1, 5, rows),
        use=Uses.of(use),
        capacity=np.floor(use.sum(axis=1) * 0.4) - blocks,
        names=tuple(f"r{i}" for i in range(resources)),
        must=(rng.random(jobs) < 0.2) & (counts > 0),
        block_value=-rng.uniform(0, 0.5, blocks),
        block_use=block_use,
        block_count=np.full(blocks, 2.0),
        block_integer=np.ones(blocks, dtype=bool),
    )


def best_of_all(problem):
    """Return the best value by trying every choice and every count; None without any."""
    ways = [
        list(range(problem.start[j], problem.start[j + 1])) + ([] if problem.must[j] else [-1])
        for j in range(problem.jobs)
    ]
    counts = [range(int(n) + 1) for n in problem.block_count]
    best = None
    for chosen in itertools.product(*ways):
        for blocks in itertools.product(*counts):
            rows, number = np.array(chosen), np.array(blocks, dtype=float)
            if (problem.excess(rows, number) <= 1e-9).all():
                value = problem.objective(rows, number)
                best = value if best is None else max(best, value)
    return best


@pytest.mark.parametrize("seed", range(60))
def test_best_answer_equals_that_of_trying_all(seed):
    """Within the whole shortfall of the best answer it is found, and within less nothing is."""
    problem = problem_of(seed)
    prices = np.random.default_rng(seed + 1000).uniform(0, 1, len(problem.names))
    bound, best = bound_at(problem, prices), best_of_all(problem)
    jobs = Jobs(problem)
    within = 100.0 if best is None else bound - best + 1e-6
    found = best_within(problem, prices, jobs.losses(prices, within, 10**6), within)
    if best is None:
        assert found.chosen is None
        return
    assert (problem.excess(found.chosen, found.blocks) <= 1e-6).all()
    assert not (problem.must & (found.chosen < 0)).any()
    assert problem.objective(found.chosen, found.blocks) == pytest.approx(best)
    less = bound - best - 1e-6
    if less > 0:
        found = best_within(problem, prices, jobs.losses(prices, less, 10**6), less)
        assert found.chosen is None


def test_a_shortfall_below_nothing_is_no_error():
    """An incumbent may exceed the bound by rounding: then nothing is within the shortfall."""
    problem = problem_of(1)
    assert len(problem.block_count)
    prices = np.zeros(len(problem.names))
    losses = Jobs(problem).losses(prices, -1e-12, 10**6)
    found = best_within(problem, prices, losses, -1e-12)
    assert found is not None
    assert found.chosen is None


def test_too_many_labels_are_given_up(monkeypatch):
    """The limit holds, and says so."""
    problem = problem_of(4)
    prices = np.zeros(len(problem.names))
    losses = Jobs(problem).losses(prices, np.inf, 10**6)
    assert best_within(problem, prices, losses, 1e3) is not None
    monkeypatch.setattr(core, "MOST_LABELS", 3)
    assert best_within(problem, prices, losses, 1e3) is None


def test_blocks_in_any_amount_are_left_to_the_milp():
    """Power drawn in racks is not counted in whole numbers."""
    from dataclasses import replace

    problem = replace(problem_of(1), block_integer=np.array([False]))
    prices = np.zeros(len(problem.names))
    losses = Jobs(problem).losses(prices, np.inf, 10**6)
    assert best_within(problem, prices, losses, 1.0) is None
