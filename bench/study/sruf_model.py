"""The SRUF snapshot (`bench.study.sruf_snapshot`, which has the formulas) as a Pyomo model."""

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ronda.bench.study.sruf_snapshot import Counts, SrufSnapshot


def build(problem: SrufSnapshot) -> Any:
    """Return the Pyomo model: ``x[j, c]``, ``score``, ``one_count[j]``, ``work_conservation``."""
    model = pyo.ConcreteModel("sruf")
    limits = problem.limits.tolist()
    model.pairs = [(j, c) for j, most in enumerate(limits) for c in range(1, most + 1)]
    model.x = pyo.Var(model.pairs, domain=pyo.Binary)
    if not model.pairs:
        model.nothing = pyo.Var(bounds=(0, 0))
    score(model, problem)
    one_count(model, limits)
    work_conservation(model, problem)
    return model


def score(model: Any, problem: SrufSnapshot) -> None:
    """Min Σ_jc w_jc x_jc."""
    weights = problem.weights.tolist()
    worth = pyo.quicksum(weights[j][c - 1] * model.x[j, c] for j, c in model.pairs)
    model.score = pyo.Objective(expr=worth + _nothing(model), sense=pyo.minimize)


def one_count(model: Any, limits: list[int]) -> None:
    """Σ_c x_jc ≤ 1 for each job j that may have GPUs."""
    jobs = [j for j, most in enumerate(limits) if most]

    def rule(_: Any, j: int) -> Any:
        return pyo.quicksum(model.x[j, c] for c in range(1, limits[j] + 1)) <= 1

    model.one_count = pyo.Constraint(jobs, rule=rule)


def work_conservation(model: Any, problem: SrufSnapshot) -> None:
    """Σ_jc c x_jc = min(C, Σ_j R_j)."""
    used = pyo.quicksum(c * model.x[j, c] for j, c in model.pairs)
    model.work_conservation = pyo.Constraint(expr=used + _nothing(model) == problem.used)


def counts(model: Any, jobs: int) -> Counts:
    """Return (J,) the GPUs of each job in a solved model."""
    gpus = np.zeros(jobs, dtype=np.int64)
    for j, c in model.pairs:
        if model.x[j, c].value > 0.5:
            gpus[j] = c
    return gpus


def _nothing(model: Any) -> Any:
    """Return the variable that is 0 where there is no other, so that rows have one."""
    return 0.0 if model.pairs else model.nothing
