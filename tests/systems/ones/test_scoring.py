"""A generation of ONES by hand: what only refresh, crossover or mutation can bring about."""

from dataclasses import replace

import numpy as np
import pytest

from ronda.systems.ones.scoring import Tick, first_population, generation


def tick(deployed, weights, limits, protected=()):
    """Return a tick of jobs that all have run; scores are `weights` (J, C + 1), less is better."""
    jobs, gpus = len(weights), len(deployed)
    limit = np.array(limits)
    return Tick(
        deployed=np.array(deployed),
        ones_max=limit,
        train_max=limit,
        start=np.ones(jobs, dtype=np.int64),
        sizes=np.tile(np.arange(gpus + 1), (jobs, 1)),
        new=np.zeros(0, dtype=np.int64),
        executed=np.arange(jobs)[::-1],
        protected=np.isin(np.arange(jobs), protected),
        weights=np.array(weights, dtype=float),
    )


def best(population, given, *, crossed=0.0, mutated=0.0):
    """Return the best genome of the next population, and its score."""
    rng = np.random.default_rng(1)
    genomes, scores = generation(np.array(population), given, rng, crossed=crossed, mutated=mutated)
    assert (np.diff(scores) >= 0).all()
    return genomes[0].tolist(), scores[0]


def test_refresh_takes_gpus_beyond_the_limit():
    """The job would be better off on two GPUs (5 instead of 10 to come), but its limit is 1."""
    given = tick([0, 0], [[20, 10, 5]], limits=[1])
    assert best([[0, 0]] * 4, given) == ([0, -1], 10.0)
    assert best([[0, 0]] * 4, tick([0, 0], [[20, 10, 5]], limits=[2])) == ([0, 0], 5.0)


def test_crossover_brings_jobs_of_two_parents_together():
    """Half of the parents run jobs 0 and 1, half 2 and 3; without 0 and 3 each costs 10.

    A parent has one of them: 10. A child with the left half of one and the right half of the
    other has both: 0. All GPUs are taken, so that padding adds nothing.
    """
    weights = [[10, 5, 0, 0, 0], [0] * 5, [0] * 5, [10, 5, 0, 0, 0]]
    given = tick([0, 0, 1, 1], weights, limits=[2, 2, 2, 2])
    parents = [[0, 0, 1, 1], [2, 2, 3, 3]] * 20
    assert best(parents, given)[1] == 10.0
    genome, score = best(parents, given, crossed=0.5)
    assert (sorted(genome), score) == ([0, 0, 3, 3], 0.0)


@pytest.mark.parametrize(("protected", "score"), [((), 0.0), ((0,), 10.0)])
def test_mutation_makes_room(protected, score):
    """Job 0 has both GPUs in all genomes; only if it is taken out can the waiting job 1 start."""
    given = tick([0, 0], [[0, 0, 0], [10, 5, 0]], limits=[2, 2], protected=protected)
    assert best([[0, 0]] * 8, given)[1] == 10.0
    assert best([[0, 0]] * 8, given, mutated=0.5)[1] == score


def test_the_first_population_has_what_runs_and_new_jobs_as_far_as_they_fit():
    """One GPU is idle, for which jobs 1 and 2 wait: both orders are drawn."""
    given = replace(tick([0, -1], [[0.0] * 3] * 3, limits=[1, 1, 1]), new=np.array([1, 2]))
    found = first_population(given, 16, np.random.default_rng(0))
    assert sorted(set(map(tuple, found.tolist()))) == [(0, 1), (0, 2)]
