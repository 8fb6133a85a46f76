"""The comparison with plain DEAP compares like with like."""

import json

import numpy as np

from ronda.bench.speed.genetic import compare, main, plain_evaluation
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


def test_ours_is_faster_and_better():
    """On a small round, vectorised evaluation is faster and the plan found is worth more."""
    speed = compare(jobs=24, gpus=32, population=64, generations=10)
    assert speed.evaluate_per_s > speed.plain_evaluate_per_s
    assert -1e-9 <= speed.gap < speed.plain_gap


def test_prints_one_object_per_size(capsys):
    """Every line of the output is JSON with the fields of `Speed`."""
    main(["--jobs", "8,16", "--population", "8", "--generations", "2"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["jobs"] for line in lines] == [8, 16]
    assert all(line["search_per_s"] > 0 for line in lines)
