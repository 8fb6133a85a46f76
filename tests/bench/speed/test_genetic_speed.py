"""The comparison with plain DEAP compares like with like."""

import json

import numpy as np

from ronda.bench.speed.__main__ import main
from ronda.bench.speed.cases import FIELDS
from ronda.bench.speed.genetic import plain_evaluation
from ronda.formulations.allocation.case import make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.genes import genes
from ronda.instances import generate
from ronda.solvers.decision.plan import Question
from ronda.solvers.genetic.engine import own_random
from ronda.solvers.genetic.operators import draw


def test_plain_evaluation_is_that_of_the_problem():
    """Repaired individuals have the same objective; all jobs at their most are infeasible."""
    question = Question.of(generate.round(jobs=24, severity="tight", seed=1), "rank")
    case = make_case(question.round, question.table, question.values)
    problem = separable(case)
    pool, evaluate = genes(case, problem, np.ones(len(problem.names))), plain_evaluation(problem)
    with own_random(0):
        population = np.array([draw(pool, pool.free.tolist()) for _ in range(20)])
    plain = [evaluate(genome)[0] for genome in population.tolist()]
    assert np.allclose(plain, pool.worth(population))
    assert min(plain) > 0
    most = np.maximum.reduceat(problem.use[0], problem.start[:-1])
    jobs = zip(problem.start.tolist(), problem.start[1:].tolist(), most, strict=False)
    largest = [a + int(problem.use[0, a:b].tolist().index(m)) for a, b, m in jobs]
    assert evaluate(largest)[0] < 0


def test_ours_is_better_in_the_same_time(capsys):
    """On a small round the plan found is worth more, for as many generations and as much time."""
    words = ["genetic", "--jobs", "16", "--population", "16", "--generations", "8", "--here"]
    assert main(words) == 0
    line = json.loads(capsys.readouterr().out)
    assert set(FIELDS) <= line.keys()
    assert -1e-9 <= line["gap"] < min(line["plain_gap"], line["as_long_gap"])
