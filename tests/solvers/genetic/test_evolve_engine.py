"""The engine's trajectory: islands, callbacks; and its operators."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.allocation.greedy_fill import dual_bound
from ronda.formulations.allocation.limits import limits
from ronda.formulations.genes.building import genes, genes_of
from ronda.formulations.genes.neighbourhood import move_losses, settle
from ronda.formulations.objectives.forms import values
from ronda.formulations.options.table import build
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.solvers import stopping
from ronda.solvers.contract import Deadline
from ronda.solvers.genetic.engine import evolve
from ronda.solvers.genetic.island import Settings
from ronda.solvers.genetic.local import core, exchange, push
from ronda.solvers.genetic.operators import crossover_groups, draw, revert
from ronda.solvers.genetic.rates import FLOOR, Rates
from ronda.solvers.genetic.repair import repair
from ronda.solvers.genetic.starts import priced, shortest_first

MEMETIC = Settings(population=16, exchanges=1, adaptive=True)


def pool_of(jobs=24, *, severity="tight", seed=3, round_=None):
    """Return the genes of a generated round that know where jobs run, at dual prices."""
    round_ = round_ or generate.round(jobs=jobs, severity=severity, seed=seed)
    table = build(round_)
    worth = values(round_, table)
    bounds = limits(round_, table)
    _, prices = dual_bound(round_, table, worth, sleeping=bool(bounds.node_w))
    losses = move_losses(round_, table, worth)
    return settle(genes(table, worth, bounds, prices), round_, table, losses)


@pytest.fixture(scope="module", name="pool")
def _pool():
    return pool_of()


def search(pool, seed=7, *, generations=10, given=MEMETIC, **more):
    """Search from "all wait"."""
    stop = stopping.generations(generations)
    return evolve(pool, pool.first[None], given, stop, seed=seed, deadline=Deadline(), **more)


def trajectory(outcome):
    """Return each generation's record."""
    return [dict(record.items()) for record in outcome.logbook]


def test_islands_exchange_their_best(pool):
    """After a migration every island has an individual as good as its neighbour's best before."""
    given = replace(MEMETIC, islands=2, interval=5)
    found = search(pool, given=given)
    assert found.evaluations == 2 * 16 * 11
    alone = [search(pool, given=MEMETIC, seed=s).objective for s in (1, 2)]
    assert found.objective >= min(alone) * 0.98
    best = [record["best"] for record in trajectory(found)]
    assert best == sorted(best)


def test_callback_sees_every_generation_and_may_draw_at_random(pool):
    """It uses and reseeds the global `random` without any effect on the search."""
    seen = []

    def look(status):
        random.seed(0)
        seen.append((status.generations, status.best, random.random()))

    found = search(pool, on_generation=look)
    assert [n for n, _, _ in seen] == list(range(11))
    assert [best for _, best, _ in seen] == [r["best"] for r in trajectory(found)]
    assert trajectory(found) == trajectory(search(pool))


def test_callers_random_stream_is_untouched(pool):
    """What it gives after a search is what it would have given."""
    random.seed(5)
    expected = [random.random() for _ in range(2)]
    random.seed(5)
    first = random.random()
    search(pool)
    assert [first, random.random()] == expected


@given(st.integers(0, 2**20), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_operators_stay_within_limits_and_never_lose(k, seed):
    """Repaired individuals keep all limits, and so do exchanges and pushes, which only gain."""
    pool = pool_of(round_=generate.tiny_round(k))
    if not len(pool):
        return
    rng = np.random.default_rng(seed)
    population = repair(pool, draw(pool, 12, rng))
    of = core(pool)
    for improve in (exchange, push):
        better = improve(pool, of, population, rng)
        assert pool.feasible(better).all()
        assert (pool.values(better) >= pool.values(population) - 1e-9).all()
    mixed = crossover_groups(pool, population, population[::-1], rng)
    assert ((mixed == population) | (mixed == population[::-1])).all()
    back = revert(pool, population, pool.held, rng)
    assert ((back == population) | (back == pool.held)).all()
    for genome in (priced(pool), shortest_first(pool, rng.random(len(pool)))):
        assert (genome >= pool.first).all()
        assert (genome < pool.first + pool.count).all()
    assert pool.feasible(shortest_first(pool, rng.random(len(pool)))[None])[0]


def test_push_puts_one_large_job_in_place_of_several_small_ones():
    """Capacity 4: jobs 0..3 are worth 1 each on one GPU, job 4 is worth 5 on four.

    From the four small ones (4) no exchange of two jobs gains: the large one needs all four to go.
    """
    pool = genes_of(
        np.arange(6),
        np.array([1.0, 1.0, 1.0, 1.0, 5.0]),
        np.array([[1.0, 1.0, 1.0, 1.0, 4.0]]),
        np.array([4.0]),
        np.array([1.1]),
    )
    small = pool.genome(np.array([0, 1, 2, 3, -1]))[None]
    rng = np.random.default_rng(0)
    of = core(pool)
    swapped, pushed = small, small
    for _ in range(60):
        swapped, pushed = exchange(pool, of, swapped, rng), push(pool, of, pushed, rng)
    assert pool.values(swapped).tolist() == [4.0]
    assert pool.values(pushed).tolist() == [5.0]


def test_rates_follow_success_and_never_forget():
    """Kind 1 always succeeds, kind 0 never: it is used at the floor of 0.1 in the end."""
    rates = Rates(2)
    assert rates.probability.tolist() == [0.5, 0.5]
    for _ in range(200):
        rates.learn(np.array([0, 1, -1]), np.array([False, True, True]))
    assert rates.probability == pytest.approx([FLOOR, 1 - FLOOR], abs=1e-6)
    drawn = rates.draw(2000, np.random.default_rng(0))
    assert 0.05 < (drawn == 0).mean() < 0.15


@pytest.mark.parametrize(
    ("usage", "value", "message"),
    [
        ([[1.0]], [1.0, 2.0], "shape"),
        ([[-1.0, 1.0]], [1.0, 2.0], "usage"),
        ([[1.0, 1.0]], [np.nan, 2.0], "value"),
    ],
)
def test_problems_that_are_none_are_refused(usage, value, message):
    """Arrays must fit, be finite, and use nothing negative."""
    with pytest.raises(InputError, match=message):
        genes_of(np.array([0, 1, 2]), np.array(value), np.array(usage), np.array([2.0]))


@pytest.mark.parametrize(
    "wrong",
    [{"population": 3}, {"mutation": 1.5}, {"crossover": -0.1}, {"islands": 0}, {"interval": 0}],
)
def test_settings_out_of_range_are_refused(wrong):
    """The parameter, its value and what is possible are named."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        Settings(**wrong)
