"""The comparison with plain DEAP compares like with like."""

import json

import numpy as np

from ronda.bench.speed.__main__ import main
from ronda.bench.speed.cases import FIELDS
from ronda.bench.speed.genetic import plain_evaluation
from ronda.formulations.allocation.limits import limits
from ronda.formulations.genes.building import genes
from ronda.formulations.objectives.forms import values
from ronda.formulations.options.build import build
from ronda.instances import generate
from ronda.solvers.genetic.operators import draw
from ronda.solvers.genetic.repair import repair


def test_plain_evaluation_is_the_vectorised_one():
    """Feasible individuals have the same objective, infeasible ones a negative one."""
    round_ = generate.round(jobs=24, severity="tight", seed=1)
    table = build(round_)
    pool = genes(table, values(round_, table), limits(round_, table))
    drawn = draw(pool, 30, np.random.default_rng(0))
    population = np.vstack([drawn, repair(pool, drawn)])
    evaluate = plain_evaluation(pool)
    plain = np.array([evaluate(genome)[0] for genome in population.tolist()])
    feasible = pool.feasible(population)
    assert feasible[30:].all()
    assert not feasible.all()
    assert np.allclose(plain[feasible], pool.values(population[feasible]) - pool.fixed_value)
    assert (plain[~feasible] < 0).all()


def test_ours_is_faster_and_better(capsys):
    """On a small round, vectorised evaluation is faster and the plan found is worth more."""
    words = ["genetic", "--jobs", "24", "--population", "64", "--generations", "10", "--here"]
    assert main(words) == 0
    line = json.loads(capsys.readouterr().out)
    assert set(FIELDS) <= line.keys()
    assert line["evaluate_per_s"] > line["plain_evaluate_per_s"]
    assert -1e-9 <= line["gap"] < line["plain_gap"]
