"""The evolutionary search: optimal on tiny rounds, within limits, repeatable, a good guest."""

import itertools
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.allocation.limits import Limits, limits
from ronda.formulations.genes.building import genes
from ronda.formulations.options.build import build
from ronda.formulations.options.table import OptionTable
from ronda.instances import generate
from ronda.instances.job import Job, JobState
from ronda.instances.plan import StopReason
from ronda.solvers import stopping
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.by_prices import allocate_by_fill, unit_prices
from ronda.solvers.genetic.engine import evolve
from ronda.solvers.genetic.evolution import Settings
from ronda.solvers.genetic.operators import draw, mutate, swap
from ronda.solvers.genetic.repair import fill as fill_up
from ronda.solvers.genetic.repair import repair

rounds = st.integers(0, 2**20)
QUICK = Settings(population=16)


def case(round_, seed, *, priced=False):
    """Return options, random values with diminishing returns, limits and genes of a round."""
    table = build(round_)
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.2, 1.0, len(table.jobs))[table.job] * table.gpus ** rng.uniform(0.3, 0.9)
    values *= rng.uniform(0.9, 1.0, len(table))
    bounds = limits(round_, table)
    greedy = allocate_by_fill(round_, table, values)
    prices = unit_prices(round_, greedy.prices) if priced else None
    return table, values, bounds, genes(table, values, bounds, prices)


def one_pool(jobs, gpus, *, capacity):
    """Return a table of options in a pool without power limit, and its limits."""
    job, use = np.array(jobs), np.array(gpus)
    ones, zeros = np.ones(len(job)), np.zeros(len(job), dtype=np.int64)
    count = int(job.max()) + 1
    table = OptionTable(
        jobs=tuple(
            JobState(job=Job(id=f"j{j}", submit_s=0, profile="none"), since_s=0)
            for j in range(count)
        ),
        pools=generate.tiny_round(4).cluster.topology.pools,
        start=np.searchsorted(job, np.arange(count + 1)),
        job=job,
        pool=zeros,
        gpus=use,
        span=zeros,
        width=zeros + 1,
        clock=ones,
        batch=ones,
        rate=ones,
        power_w=ones,
        current=zeros.astype(bool),
        must_run=np.zeros(count, dtype=bool),
    )
    return table, Limits(("gpus",), np.array([float(capacity)]), use[None, :].astype(float))


def search(pool, seed, *, seeds=None, settings=QUICK, stop=None):
    """Search for 15 generations unless told otherwise."""
    starts = pool.first[None] if seeds is None else seeds
    stop = stop or stopping.generations(15)
    return evolve(pool, starts, settings, stop, seed=seed, deadline=Deadline())


def brute_force(pool):
    """Return the value of the best feasible genome, by trying all."""
    grids = np.meshgrid(*[f + np.arange(c) for f, c in zip(pool.first, pool.count, strict=True)])
    every = np.stack([g.ravel() for g in grids], axis=1)
    return pool.values(every)[pool.feasible(every)].max()


def test_reaches_the_brute_force_optimum_of_tiny_rounds():
    """On 120 random rounds x 3 seeds of 15 generations of 16, at least 99 % are optimal."""
    optimal = tried = 0
    for k in range(120):
        _, _, _, pool = case(generate.tiny_round(k), k, priced=bool(k % 2))
        if not len(pool):
            continue
        best = brute_force(pool)
        for seed in range(3):
            found = search(pool, seed)
            assert found.objective <= best + 1e-9
            optimal += found.objective >= best - 1e-9
            tried += 1
    assert tried > 300
    assert optimal >= 0.99 * tried


@given(rounds, st.integers(0, 999), st.booleans())
@settings(max_examples=40, deadline=None)
def test_never_breaks_a_limit(k, seed, priced):
    """GPUs of each pool and watts, counted by plain loops, hold for whatever the search returns."""
    round_ = generate.tiny_round(k)
    table, _, bounds, pool = case(round_, k, priced=priced)
    if not len(pool):
        return
    found = search(pool, seed, stop=stopping.generations(3))
    chosen = [int(row) for row in pool.rows(found.genome) if row >= 0]
    assert len({int(table.job[row]) for row in chosen}) == len(chosen)
    watts = 0.0
    for p, place in enumerate(table.pools):
        own = [row for row in chosen if table.pool[row] == p]
        gpus = sum(int(table.gpus[row]) for row in own)
        assert gpus <= place.gpus
        watts += sum(float(table.power_w[row]) for row in own) - gpus * place.gpu_type.idle_w
        watts += float(bounds.node_w[p][gpus]) if bounds.node_w else 0.0
    if "watts" in bounds.names:
        assert watts <= bounds.capacity[bounds.names.index("watts")] + 1e-6


@given(rounds, st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_repair_ends_within_limits_and_leaves_the_feasible_alone(k, seed):
    """Repaired individuals are feasible and use no more of anything; feasible ones stay."""
    _, _, _, pool = case(generate.tiny_round(k), k)
    if not len(pool):
        return
    rng = np.random.default_rng(seed)
    before = draw(pool, 20, rng)
    fine = pool.feasible(before)
    after = repair(pool, before, keep=rng.random(before.shape) < 0.5)
    assert pool.feasible(after).all()
    assert (after[fine] == before[fine]).all()
    for used, was in zip(pool.sums(after), pool.sums(before), strict=True):
        assert (used <= was + 1e-9).all()


@given(rounds, st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_filling_never_loses_value_or_breaks_a_limit(k, seed):
    """Whatever rows are proposed, the filled individuals are feasible and worth no less."""
    _, _, _, pool = case(generate.tiny_round(k), k)
    if not len(pool):
        return
    rng = np.random.default_rng(seed)
    before = repair(pool, draw(pool, 20, rng))
    after = fill_up(pool, before, draw(pool, 20, rng))
    assert pool.feasible(after).all()
    assert (pool.values(after) >= pool.values(before) - 1e-12).all()


def test_repair_prefers_what_loses_least_and_spares_what_it_is_told():
    """Four jobs on 4 GPUs: of 1 GPU each and one of 4, the mildest loss goes, unless kept."""
    _, _, _, pool = case(generate.tiny_round(4), 4)  # one pool of 4 GPUs
    largest = pool.first + np.array(
        [pool.demand[0, f : f + c].argmax() for f, c in zip(pool.first, pool.count, strict=True)]
    )
    assert pool.demand[0, largest].sum() > 4
    for kept in range(len(pool)):
        keep = np.zeros((1, len(pool)), dtype=bool)
        keep[0, kept] = True
        assert repair(pool, largest[None], keep)[0, kept] == largest[kept]
    freely = repair(pool, largest[None])[0]
    density = pool.value[largest] / pool.demand[0, largest]
    assert freely[density.argmax()] == largest[density.argmax()]


def test_a_job_can_grow_at_the_expense_of_many():
    """On 64 GPUs one job gains 624 from 32 more, 14 jobs of 2 give up 22 each and two 50: 408.

    Per GPU the two are worth 25, more than the 19.5 of the growth: repair alone would take the
    growth back, so this needs the mutated gene to be spared. 64 GPUs for one are worth 1337.
    """
    jobs = [0, 0, *list(range(1, 17))]
    gpus = [32, 64] + [2] * 16
    worth = [713.0, 1337.0] + [22.0] * 14 + [50.0] * 2
    table, bounds = one_pool(jobs, gpus, capacity=64)
    pool = genes(table, np.array(worth), bounds)
    start = pool.first + 1  # 32 GPUs for the first job, 2 for each other one: full
    assert pool.values(start[None])[0] == 713 + 14 * 22 + 2 * 50
    for seed in range(10):
        assert search(pool, seed, seeds=np.repeat(start[None], 16, axis=0)).objective == 1337


def test_operators_stay_within_each_jobs_rows():
    """Mutants and swaps are genomes: every gene is a row of its own job."""
    _, _, _, pool = case(generate.round(jobs=20, seed=1), 1)
    rng = np.random.default_rng(0)
    population = draw(pool, 200, rng)
    for changed in (mutate(pool, population, 1.0, rng), swap(pool, population, rng)):
        assert (changed >= pool.first).all()
        assert (changed < pool.first + pool.count).all()
        assert (changed != population).any(axis=1).mean() > 0.5
    assert (mutate(pool, population, 0.0, rng) == population).all()


def test_a_swap_exchanges_what_two_jobs_use():
    """In a pool where jobs have equal GPU counts to choose from, total demand stays the same."""
    _, _, _, pool = case(generate.round(jobs=20, seed=1), 1)
    one = pool.first.copy()[None]
    small, large = np.argsort(pool.count)[-2:]
    one[0, large] = pool.first[large] + pool.count[large] - 1
    rng = np.random.default_rng(0)
    pairs = [swap(pool, one, rng)[0] for _ in range(2000)]
    given = [p for p in pairs if p[large] == pool.first[large] and p[small] != pool.first[small]]
    assert given
    want = pool.demand[0, one[0, large]]
    options = pool.demand[0, pool.first[small] : pool.first[small] + pool.count[small]]
    assert abs(pool.demand[0, given[0][small]] - want) <= 2 * np.abs(options - want).min() + 1


def test_same_seed_same_trajectory():
    """Every generation's record is repeated by the same seed, and not by another."""
    _, _, _, pool = case(generate.round(jobs=24, severity="tight", seed=3), 3)
    again = [search(pool, seed) for seed in (7, 7, 8)]
    records = [[dict(entry.items()) for entry in a.logbook] for a in again]
    assert records[0] == records[1] != records[2]
    assert (again[0].genome == again[1].genome).all()
    assert len(records[0]) == 16
    best = [entry["best"] for entry in records[0]]
    assert best == sorted(best)
    assert records[0][-1]["evaluations"] == again[0].evaluations == 16 * 16


def test_incumbents_grow_in_time_and_value():
    """The trace is ascending in both and ends with the objective."""
    _, _, _, pool = case(generate.round(jobs=24, severity="tight", seed=3), 3)
    found = search(pool, 0)
    seconds, worth = zip(*found.incumbents, strict=True)
    assert list(seconds) == sorted(seconds)
    assert all(a < b for a, b in itertools.pairwise(worth))
    assert worth[-1] == found.objective == pytest.approx(pool.values(found.genome[None])[0])


def test_the_callers_randomness_is_untouched():
    """What `random` and `numpy.random` give after a search is what they would have given."""
    _, _, _, pool = case(generate.tiny_round(4), 4)
    random.seed(5)
    np.random.seed(5)
    expected = random.random(), random.random(), np.random.random()
    random.seed(5)
    np.random.seed(5)
    first = random.random()
    search(pool, 1)
    assert (first, random.random(), np.random.random()) == expected


def test_the_callers_randomness_survives_an_error():
    """An exception inside the search, too, leaves `random` as it was found."""
    _, _, _, pool = case(generate.tiny_round(4), 4)
    before = random.getstate()

    def fail(status):
        raise KeyError(status.generations)

    with pytest.raises(KeyError):
        search(pool, 1, stop=fail)
    assert random.getstate() == before


def test_the_callers_randomness_does_not_matter():
    """The search depends on its own seed only."""
    _, _, _, pool = case(generate.round(jobs=16, seed=2), 2)
    random.seed(1)
    one = search(pool, 3)
    random.seed(2)
    assert one.logbook == search(pool, 3).logbook


def test_returns_by_the_deadline_with_what_it_has():
    """0.2 s end a search without other limits, with a feasible incumbent."""
    _, _, _, pool = case(generate.round(jobs=128, severity="tight", seed=1), 1)
    started = time.perf_counter()
    deadline = Deadline(0.2)
    stop = stopping.first_of(stopping.generations(10**9), stopping.deadline(deadline))
    found = evolve(pool, pool.first[None], Settings(), stop, seed=0, deadline=deadline)
    assert time.perf_counter() - started < 0.4
    assert found.stop is StopReason.TIME_LIMIT
    assert found.generations > 5
    assert pool.feasible(found.genome[None])[0]


@given(rounds, st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_is_never_worse_than_its_seeds(k, seed):
    """The best of one generation is worth at least the greedy choice and any feasible seed."""
    round_ = generate.tiny_round(k)
    table, values, _, pool = case(round_, k)
    if not len(pool):
        return
    rng = np.random.default_rng(seed)
    greedy = pool.genome(allocate_by_fill(round_, table, values).chosen)
    others = repair(pool, draw(pool, 3, rng))
    seeds = np.vstack([greedy, others])
    assert pool.feasible(seeds).all()
    settings = Settings(population=4)
    found = search(pool, seed, seeds=seeds, settings=settings, stop=stopping.generations(1))
    assert found.objective >= pool.values(seeds).max() - 1e-12


def test_prices_make_large_searches_better():
    """With dual prices the first generation is within 3 % of the bound, without far from it."""
    round_ = generate.round(jobs=128, severity="tight", seed=1)
    table, values, _, plain = case(round_, 1)
    bound = allocate_by_fill(round_, table, values).bound
    _, _, _, priced = case(round_, 1, priced=True)
    start = {
        name: search(pool, 0, settings=Settings(), stop=stopping.generations(1)).logbook[0]["best"]
        for name, pool in (("plain", plain), ("priced", priced))
    }
    assert start["plain"] < start["priced"] <= bound
    assert start["priced"] > 0.97 * bound
