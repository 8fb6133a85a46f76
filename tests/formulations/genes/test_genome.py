"""Genomes: what they mean, and that no arithmetic on populations disagrees with plain loops."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.allocation.limits import limits
from ronda.formulations.genes.building import genes
from ronda.formulations.genes.genome import favourites, within
from ronda.formulations.options.build import build
from ronda.instances.generate.tiny import tiny_round

rounds = st.integers(0, 2**20)


def case(seed):
    """Return a tiny round, its options, random values and its limits."""
    round_ = tiny_round(seed)
    table = build(round_)
    values = np.random.default_rng(seed).uniform(-0.2, 1.0, len(table)) * table.gpus
    return round_, table, values, limits(round_, table)


def overloaded(round_, table, rows):
    """Tell by plain loops whether no set of awake nodes has the GPUs and the watts for the rows."""
    chosen = [int(k) for k in rows if k >= 0]
    need = [0] * len(table.pools)
    jobs_w = jobs_j = 0.0
    for k in chosen:
        need[table.pool[k]] += int(table.gpus[k])
        idle_w = table.pools[table.pool[k]].gpu_type.idle_w
        extra_w = float(table.power_w[k]) - int(table.gpus[k]) * idle_w
        work = table.jobs[table.job[k]].remaining_at(round_.now_s)
        runs_s = np.inf if work is None else work / float(table.rate[k])
        jobs_w += extra_w
        jobs_j += extra_w * min(runs_s, round_.window_s)
    t = round_.cluster.topology
    nodes = range(len(t.node_gpus))
    for awake in itertools.product((True, False), repeat=len(nodes)):
        have, watts = [0] * len(need), 0.0
        for node in nodes:
            if awake[node]:
                have[t.node_pool[node]] += int(t.node_gpus[node])
                watts += t.host_idle_w[node] + t.node_gpus[node] * t.gpu_idle_w[node]
            else:
                watts += t.sleep_w[node]
        enough = all(h >= n for h, n in zip(have, need, strict=True))
        cap_w, energy_j = round_.power_cap_w, round_.energy_j
        cool = cap_w is None or watts + jobs_w <= cap_w * (1 + 1e-9)
        joules = watts * round_.window_s + jobs_j
        if enough and cool and (energy_j is None or joules <= energy_j * (1 + 1e-9)):
            return False
    return True


@given(rounds, st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_values_and_feasibility_of_populations_equal_plain_loops(seed, draw):
    """For random genomes the vectorised objective and limits are those of the assignment."""
    round_, table, values, bounds = case(seed)
    pool = genes(table, values, bounds)
    rng = np.random.default_rng(draw)
    population = pool.first + rng.integers(pool.count, size=(5, len(pool)))
    worth, feasible = pool.values(population), pool.feasible(population)
    for i, genome in enumerate(population):
        rows = pool.rows(genome)
        assert np.isclose(worth[i], sum(values[k] for k in rows if k >= 0))
        assert feasible[i] == (not overloaded(round_, table, rows)) == within(table, rows, bounds)
        assert (pool.genome(rows) == genome).all()


@given(rounds)
@settings(max_examples=60, deadline=None)
def test_steps_lead_to_rows_of_the_same_job(seed):
    """`up` gains value; `down` uses less, no more of anything, and ends where the job waits."""
    _, table, values, bounds = case(seed)
    pool = genes(table, values, bounds)
    job = np.repeat(np.arange(len(pool)), pool.count)
    assert (job[pool.up] == job).all()
    moved = pool.up != np.arange(len(pool.row))
    assert (pool.value[pool.up] > pool.value)[moved].all()
    for k in range(len(pool.row)):
        own = np.flatnonzero(job == job[k])
        gain = pool.value[own] - pool.value[k]
        best = (gain / np.maximum(pool.cost[own] - pool.cost[k], 1e-12)).max()
        to = pool.up[k]
        step = (pool.value[to] - pool.value[k]) / max(pool.cost[to] - pool.cost[k], 1e-12)
        assert np.isclose(step, max(best, 0.0))
    for r, down in enumerate(pool.down):
        assert (job[down] == job).all()
        assert (pool.demand[:, down] <= pool.demand).all()
        uses = pool.demand[r] > 0
        assert (pool.demand[r, down] < pool.demand[r])[uses].all()
    assert (pool.row[pool.first] == -1).all()
    assert (pool.value[pool.first] == 0).all()


@given(rounds)
@settings(max_examples=60, deadline=None)
def test_jobs_that_must_run_have_no_gene(seed):
    """They keep their only row in every assignment, and what they use is taken off."""
    _, table, values, bounds = case(seed)
    pool = genes(table, values, bounds)
    must = np.flatnonzero(table.must_run)
    rows = pool.rows(pool.first)
    assert (table.job[rows[must]] == must).all()
    assert not set(must) & set(pool.column)
    assert (rows[~table.must_run] == -1).all()


@given(rounds)
@settings(max_examples=60, deadline=None)
def test_favourites_are_the_best_rows(seed):
    """Without limits every job takes its most valuable row, or none if none is worth anything."""
    _, table, values, _ = case(seed)
    rows = favourites(table, values)
    for j in range(len(table.jobs)):
        own = np.arange(table.start[j], table.start[j + 1])
        if table.must_run[j]:
            assert rows[j] == own[0]
        elif len(own) and values[own].max() > 0:
            assert rows[j] == own[values[own].argmax()]
        else:
            assert rows[j] == -1


def test_rows_that_cannot_be_chosen_have_no_gene():
    """Options worth nothing, or too large for what there is, are left out, as are unknown rows."""
    _, table, values, bounds = case(4)  # one pool of 4 GPUs
    values = np.where(table.gpus == table.gpus.min(), -1.0, np.abs(values) + 0.1)
    pool = genes(table, values, bounds)
    kept = pool.row[pool.row >= 0]
    assert len(kept) == (values > 0).sum() > 0
    assert (values[kept] > 0).all()
    unknown = np.full(len(table.jobs), -1)
    dropped = np.flatnonzero(values < 0)[0]
    unknown[table.job[dropped]] = dropped
    assert (pool.genome(unknown) == pool.first).all()
