"""The evolutionary search: optimal on tiny rounds, within limits, repeatable, a good guest."""

import itertools
import random

import numpy as np
import pytest
from deap import creator
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.genes.genome import Genes, genes
from ronda.formulations.options.build import build
from ronda.instances import generate
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers import stopping
from ronda.solvers.genetic import operators
from ronda.solvers.genetic.engine import EvolutionSettings, evolve, own_random, toolbox
from ronda.solvers.prices.engine import first_answer
from ronda.solvers.prices.fill import is_feasible, needed_blocks

rounds = st.integers(0, 2**20)
QUICK = EvolutionSettings(population=16)


def case(round_, seed):
    """Return a round's case under random values with diminishing returns, and its genes."""
    table = build(round_)
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.2, 1.0, len(table.jobs))[table.job] * table.gpus ** rng.uniform(0.3, 0.9)
    values *= rng.uniform(0.9, 1.0, len(table))
    made = make_case(round_, table, values)
    problem = separable(made)
    return made, genes(made, problem, first_answer(problem).dual.prices)


def knapsack(options, capacity):
    """Return genes of jobs that are given by their options: (value, GPUs), ..."""
    value, use = (np.array(column) for column in zip(*itertools.chain(*options), strict=True))
    start = np.cumsum([0, *map(len, options)])
    room = np.array([float(capacity)])
    problem = Separable.without_blocks(start, value, use[None].astype(float), room, ("gpus",))
    return Genes(problem, np.ones(1), np.arange(len(value), dtype=float)[None])


def search(pool, seed, *, starts=None, settings=QUICK, stop=None):
    """Search for 15 generations unless told otherwise."""
    nobody = [np.full(pool.problem.jobs, -1)]
    stop = stop or stopping.generations(15)
    return evolve(pool, starts or nobody, settings, stop, seed=seed, deadline=Deadline())


def feasible(pool, genome):
    """Tell whether a genome keeps all limits with the nodes that it needs."""
    blocks = needed_blocks(pool.problem, pool.prices, genome)
    return is_feasible(pool.problem, genome, blocks)


def drawn(pool, size, seed):
    """Return genomes with rows drawn at random, which may break limits."""
    rng, start = np.random.default_rng(seed), pool.problem.start
    rows = start[:-1] + (rng.random((size, pool.problem.jobs)) * (np.diff(start) + 1)).astype(int)
    first = np.where(pool.problem.must, start[:-1], -1)
    return np.where(rows < start[1:], rows, first)


def brute_force(pool):
    """Return the value of the best feasible genome, by trying all."""
    start, must = pool.problem.start.tolist(), pool.problem.must.tolist()
    ways = [
        [*range(a, b), *([] if m else [-1])]
        for a, b, m in zip(start, start[1:], must, strict=False)
    ]
    every = np.array(list(itertools.product(*ways)))
    order = np.argsort(-pool.worth(every), kind="stable")
    return next(pool.worth(every[i : i + 1])[0] for i in order if feasible(pool, every[i]))


def test_reaches_the_brute_force_optimum_of_tiny_rounds():
    """Of random rounds, searched for up to 30 generations of 16, at least 97 % are optimal."""
    optimal = tried = 0
    for k in range(40):
        _, pool = case(generate.tiny_round(k), k)
        if not len(pool.free) or np.prod(np.diff(pool.problem.start) + 1.0) > 2_000:
            continue
        best = brute_force(pool)
        stop = stopping.first_of(stopping.gap(best, 1e-9), stopping.generations(30))
        found = search(pool, k, stop=stop)
        assert found.objective <= best + 1e-9
        optimal += found.objective >= best - 1e-9
        tried += 1
    assert tried > 20
    assert optimal >= 0.97 * tried


@given(rounds, st.integers(0, 999))
@settings(max_examples=25, deadline=None)
def test_never_breaks_a_limit(k, seed):
    """GPUs, watts and joules, counted by plain loops, hold for whatever the search returns."""
    round_ = generate.tiny_round(k)
    made, pool = case(round_, k)
    if not len(pool.free):
        return
    found = search(pool, seed, stop=stopping.generations(3))
    rows = [int(made.rows[k]) for k in found.best[0] if k >= 0]
    table, t, jobs_w, jobs_j, nodes_w = made.table, round_.cluster.topology, 0.0, 0.0, 0.0
    assert len({int(table.job[row]) for row in rows}) == len(rows)
    for p, place in enumerate(table.pools):
        own = [row for row in rows if table.pool[row] == p]
        gpus = sum(int(table.gpus[row]) for row in own)
        assert gpus <= place.gpus
        for row in own:
            extra_w = float(table.power_w[row]) - int(table.gpus[row]) * place.gpu_type.idle_w
            work = table.jobs[table.job[row]].remaining_at(round_.now_s)
            runs_s = np.inf if work is None else work / float(table.rate[row])
            jobs_w += extra_w
            jobs_j += extra_w * min(runs_s, round_.window_s)
        nodes = [n for n in range(len(t.node_gpus)) if t.node_pool[n] == p]
        awake = -(-gpus // place.gpus_per_node) if made.sleeps else len(nodes)
        each = sorted(t.awake_w[n] - t.sleep_w[n] for n in nodes)
        nodes_w += sum(t.sleep_w[n] for n in nodes) + sum(each[:awake])
    if round_.power_cap_w is not None:
        assert nodes_w + jobs_w <= round_.power_cap_w + 1e-6
    if round_.energy_j is not None:
        assert nodes_w * round_.window_s + jobs_j <= round_.energy_j * (1 + 1e-9)


@given(rounds, st.integers(0, 999))
@settings(max_examples=20, deadline=None)
def test_repair_ends_within_limits_and_leaves_the_feasible_alone(k, seed):
    """Repaired genomes are feasible and use no more of anything; feasible ones stay."""
    _, pool = case(generate.tiny_round(k), k)
    rng = np.random.default_rng(seed)
    for before in drawn(pool, 5, seed):
        kept = np.flatnonzero(rng.random(len(before)) < 0.3).tolist()
        after = operators.repair(pool, before, kept)
        assert feasible(pool, after)
        if feasible(pool, before):
            assert (after == before).all()
        assert (pool.use[:, after].sum(axis=1) <= pool.use[:, before].sum(axis=1) + 1e-9).all()


def test_jobs_shrink_by_the_mildest_steps():
    """On 5 GPUs, 6 asked: per GPU A loses 1 by one less, C 1.5 and B 2.5 by stopping."""
    pool = knapsack([[(2.0, 1), (3.0, 2)], [(1.0, 1), (5.0, 2)], [(3.0, 2)]], 5)
    assert operators.repair(pool, np.array([1, 3, 4])).tolist() == [0, 3, 4]
    assert pool.down[0].tolist() == [-1, 0, -1, -1, -1, -1]


def test_a_job_can_grow_at_the_expense_of_many():
    """On 64 GPUs one job gains 624 from 32 more, 14 jobs of 2 give up 22 each and two 50: 408.

    Per GPU the two are worth 25, more than the 19.5 of the growth: repair alone would take the
    growth back, so this needs the mutated gene to be spared. 64 GPUs for one are worth 1337.
    """
    pool = knapsack([[(713.0, 32), (1337.0, 64)], *[[(22.0, 2)]] * 14, *[[(50.0, 2)]] * 2], 64)
    start = np.array([0, *range(2, 18)])  # 32 GPUs for the first job, 2 for each other one: full
    grown = np.array([1, *range(2, 18)])
    assert pool.worth(start[None])[0] == 713 + 14 * 22 + 2 * 50
    assert pool.worth(operators.repair(pool, grown, [0])[None])[0] == 1337
    assert pool.worth(operators.repair(pool, grown)[None])[0] == 813
    plain = EvolutionSettings(population=16, improved=0)
    for seed in range(5):
        assert search(pool, seed, starts=[start], settings=plain).objective == 1337


def test_children_have_rows_of_both_parents():
    """One parent has all first rows, the other all second ones; nothing is scarce."""
    pool = knapsack([[(1.0, 1), (2.0, 2)]] * 20, 100)
    one = creator.Individual(range(0, 40, 2))
    other = creator.Individual(range(1, 40, 2))
    with own_random(0):
        child, _ = operators.mate(pool, one, other)
    from_other = sum(row % 2 for row in child)
    assert 0 < from_other < 20
    assert [row // 2 for row in child] == list(range(20))


def test_mutants_differ_in_few_jobs():
    """Where nothing is scarce one or two jobs do something else, each within its own rows."""
    pool = knapsack([[(1.0, 1), (2.0, 2)]] * 20, 100)
    hit = 0
    with own_random(0):
        box = toolbox(pool, QUICK)
        for _ in range(50):
            before = creator.Individual(box.draw().tolist())
            (after,) = box.mutate(box.clone(before))
            changed = [j for j in range(20) if after[j] != before[j]]
            assert len(changed) <= operators.CHANGED
            hit += len(changed)
            assert all(after[j] in (-1, 2 * j, 2 * j + 1) for j in changed)
    assert hit > 50


def test_crossover_alone_joins_what_is_good_in_two_parents():
    """One start serves the first 6 jobs, the other the last 6; all 12 fit."""
    pool = knapsack([[(1.0, 1)]] * 12, 12)
    halves = [np.where(np.arange(12) // 6 == half, np.arange(12), -1) for half in (0, 1)]
    crossed = EvolutionSettings(population=16, improved=0, crossover=1.0, mutation=0.0)
    copied = EvolutionSettings(population=16, improved=0, crossover=0.0, mutation=0.0)
    starts = [*halves] * 8  # nothing is drawn at random
    assert search(pool, 0, starts=starts, settings=crossed).objective > 9
    assert search(pool, 0, starts=starts, settings=copied).objective == 6


def test_mutation_alone_finds_what_no_parent_has():
    """From nobody running: each of 6 jobs is worth 1 on one GPU and 3 on two, of 12 in all."""
    pool = knapsack([[(1.0, 1), (3.0, 2)]] * 6, 12)
    starts = [np.full(6, -1)] * 16
    mutated = EvolutionSettings(population=16, improved=0, crossover=0.0, mutation=1.0)
    crossed = EvolutionSettings(population=16, improved=0, crossover=1.0, mutation=0.0)
    assert search(pool, 0, starts=starts, settings=mutated).objective == 18
    assert search(pool, 0, starts=starts, settings=crossed).objective == 0


def test_exchanges_find_what_filling_does_not():
    """On 3 GPUs: A is worth 5 on 2 and 6 on 3, B 2 on 1: A at 3 has to shrink for B to begin."""
    pool = knapsack([[(5.0, 2), (6.0, 3)], [(2.0, 1)]], 3)
    worth = {}
    for exchanges in (0, 2):
        grown = [creator.Individual([1, -1])]
        ((worth[exchanges],),) = operators.evaluate(pool, grown, improved=1, exchanges=exchanges)
        assert pool.worth(np.array(grown))[0] == worth[exchanges]
    assert worth == {0: 6.0, 2: 7.0}


def test_only_the_best_children_are_filled():
    """Of two who leave GPUs idle, the better one gets them."""
    pool = knapsack([[(1.0, 1), (2.0, 2)]] * 3, 6)
    children = [creator.Individual([0, -1, -1]), creator.Individual([0, 2, -1])]
    assert operators.evaluate(pool, children, improved=1, exchanges=0) == [(1.0,), (6.0,)]
    assert children == [[0, -1, -1], [1, 3, 5]]


def test_same_seed_same_trajectory():
    """Every generation's record is repeated by the same seed, and not by another."""
    _, pool = case(generate.round(jobs=24, severity="tight", seed=3), 3)
    again = [search(pool, seed) for seed in (7, 7, 8)]
    records = [[dict(entry.items()) for entry in a.logbook] for a in again]
    assert records[0] == records[1] != records[2]
    assert (again[0].best == again[1].best).all()
    assert len(records[0]) == 16
    best = [entry["best"] for entry in records[0]]
    assert best == sorted(best)
    assert records[0][-1]["evaluations"] == again[0].evaluations <= 16 * 16
    values = [value for _, value in again[0].incumbents]
    assert values == sorted(set(values))
    assert values[-1] == again[0].objective == pytest.approx(pool.worth(again[0].best[:1])[0])


def test_the_callers_randomness_is_untouched_and_does_not_matter():
    """`random` gives after a search, and after one that fails, what it would have given."""
    _, pool = case(generate.tiny_round(4), 4)

    def fail(status):
        raise KeyError(status.generations)

    random.seed(5)
    expected = [random.random() for _ in range(3)]
    random.seed(5)
    first = random.random()
    logs = [search(pool, 1).logbook]
    second = random.random()
    with pytest.raises(KeyError):
        search(pool, 1, stop=fail)
    assert [first, second, random.random()] == expected
    assert search(pool, 1).logbook == logs[0]


def test_returns_by_the_deadline_with_what_it_has(processor_time):
    """0.3 s end a search without other limits, with a feasible incumbent."""
    _, pool = case(generate.round(jobs=64, severity="tight", seed=1), 1)
    deadline = Deadline(0.3)
    stop = stopping.first_of(stopping.generations(10**9), stopping.deadline(deadline))
    nobody = [np.full(pool.problem.jobs, -1)]
    found = evolve(pool, nobody, QUICK, stop, seed=0, deadline=deadline)
    assert deadline.elapsed() < 0.6
    assert found.stop is StopReason.TIME_LIMIT
    assert found.generations > 0
    assert feasible(pool, found.best[0])


@given(rounds, st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_is_never_worse_than_its_starts(k, seed):
    """The best of one generation is worth at least any feasible start."""
    _, pool = case(generate.tiny_round(k), k)
    if not len(pool.free):
        return
    starts = [operators.repair(pool, genome) for genome in drawn(pool, 4, seed)]
    settings = EvolutionSettings(population=4)
    found = search(pool, seed, starts=starts, settings=settings, stop=stopping.generations(1))
    assert found.objective >= pool.worth(np.array(starts)).max() - 1e-12


@pytest.mark.parametrize(
    "wrong",
    [
        {"population": 3},
        {"mutation": 1.5},
        {"crossover": -0.1},
        {"improved": -1},
        {"crossover": 0.6, "mutation": 0.6},
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    """The parameter, its value and what is possible are named."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        EvolutionSettings(**wrong)
