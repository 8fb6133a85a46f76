"""Genomes: what they mean, and where a change of batch, GPUs or clock leads."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.genes.genome import genes, genome_of, table_rows
from ronda.formulations.options.build import build
from ronda.instances.generate.tiny import tiny_round

rounds = st.integers(0, 2**20)


def case(seed):
    """Return a tiny round's case under random values, and its genes."""
    round_ = tiny_round(seed)
    table = build(round_)
    values = np.random.default_rng(seed).uniform(-0.2, 1.0, len(table)) * table.gpus
    made = make_case(round_, table, values)
    problem = separable(made)
    return made, genes(made, problem, np.ones(len(problem.names)))


def drawn(pool, size, seed):
    """Return genomes with every gene drawn evenly from its job's rows and, if it may wait, -1."""
    rng, start, must = np.random.default_rng(seed), pool.problem.start, pool.problem.must
    rows = start[:-1] + (rng.random((size, len(must))) * (np.diff(start) + ~must)).astype(int)
    return np.where(rows < start[1:], rows, -1)


@given(rounds, st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_a_genome_is_an_assignment(seed, draw):
    """Rows of the table and genes are the same choice, worth the sum of its rows' values."""
    made, pool = case(seed)
    population = drawn(pool, 5, draw)
    worth = pool.worth(population)
    for i, one in enumerate(population):
        rows = table_rows(made, one)
        assert (genome_of(made, rows) == one).all()
        assert all(made.table.job[k] == j for j, k in enumerate(rows.tolist()) if k >= 0)
        assert np.isclose(worth[i], sum(made.value[k] for k in one.tolist() if k >= 0))


@given(rounds)
@settings(max_examples=20, deadline=None)
def test_a_change_leads_to_the_nearest_row_of_each_other_value(seed):
    """One row for each other batch (GPUs, clock): none is nearer in all that was not changed."""
    _, pool = case(seed)
    start, must, how = pool.problem.start, pool.problem.must, pool.how
    for j in pool.free.tolist():
        own = set(range(start[j], start[j + 1]))
        assert set(pool.others(j, -1, 0)) == own
        for row in own:
            for a in range(len(how)):
                found = pool.others(j, row, a)
                assert row not in found
                assert (-1 in found) == (not must[j])
                reached = [k for k in found if k >= 0]
                assert set(reached) <= own
                different = {k for k in own if how[a, k] != how[a, row]}
                if not different:
                    assert set(reached) == own - {row}
                    continue
                assert sorted(how[a, reached]) == sorted({how[a, k] for k in different})
                away = np.delete(np.abs(how - how[:, [row]]), a, axis=0).sum(axis=0)
                for k in reached:
                    assert away[k] == min(away[m] for m in different if how[a, m] == how[a, k])


@given(rounds)
@settings(max_examples=20, deadline=None)
def test_free_jobs_are_those_with_a_choice(seed):
    """A job that must run and has one row, or that has no row at all, is not free."""
    _, pool = case(seed)
    free = set(pool.free.tolist())
    for j, (rows, must) in enumerate(
        zip(np.diff(pool.problem.start), pool.problem.must, strict=True)
    ):
        assert (j in free) == (rows > 1 or (rows == 1 and not must))


def test_what_is_no_option_of_the_case_is_no_gene():
    """A row worth nothing is left out of the case: a plan that has it waits."""
    made, _ = case(4)
    dropped = np.setdiff1d(np.arange(len(made.table)), made.rows)
    assert len(dropped)
    rows = np.full(len(made.table.jobs), -1)
    rows[made.table.job[dropped[0]]] = dropped[0]
    assert (genome_of(made, rows) == -1).all()
