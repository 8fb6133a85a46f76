"""The monolithic Pyomo model of a separable problem: its rows, and the engine's equal."""

import numpy as np
import pytest

from ronda.bench.speed.reference import reference
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.allocation.separable_model import answer, build
from ronda.formulations.allocation.units import normalise
from ronda.instances.plan import StopReason
from ronda.solvers.exact.model import solve
from ronda.solvers.prices.engine import solve_separable
from ronda.solvers.prices.search import Search


def problem_of(jobs, capacity, *, must=None, blocks=(), names=None):
    """Return a problem; jobs are lists of (value, uses), blocks are (value, uses, n, whole)."""
    options = [option for job in jobs for option in job]
    resources = len(capacity)
    return Separable(
        start=np.cumsum([0] + [len(job) for job in jobs]),
        value=np.array([value for value, _ in options], dtype=float),
        use=np.array([use for _, use in options], dtype=float).reshape(-1, resources).T.copy(),
        capacity=np.array(capacity, dtype=float),
        names=names or tuple(f"r{i}" for i in range(resources)),
        must=np.array(must or [False] * len(jobs)),
        block_value=np.array([b[0] for b in blocks], dtype=float),
        block_use=np.array([b[1] for b in blocks], dtype=float).reshape(-1, resources).T.copy(),
        block_count=np.array([b[2] for b in blocks], dtype=float),
        block_integer=np.array([b[3] for b in blocks], dtype=bool),
    )


def random_problem(seed):
    """Return a small problem: up to five options a job, some that must run, blocks."""
    rng = np.random.default_rng([seed, 77])
    resources = int(rng.integers(1, 6))
    jobs = [
        [(rng.uniform(-0.5, 4), rng.integers(0, 7, resources)) for _ in range(rng.integers(0, 6))]
        for _ in range(rng.integers(1, 9))
    ]
    blocks = [
        (
            -rng.uniform(0, 0.4),
            rng.integers(-5, 3, resources),
            rng.integers(1, 4),
            rng.random() < 0.6,
        )
        for _ in range(rng.integers(0, 3))
    ]
    must = [bool(job) and rng.random() < 0.2 for job in jobs]
    return problem_of(jobs, rng.integers(-2, 14, resources), must=must, blocks=blocks)


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_optimum_and_infeasibility_equal_the_price_engine(first):
    """120 random problems to a gap of 1e-9: same optimum, same verdict, an answer that holds."""
    verdicts = set()
    for seed in range(first, first + 30):
        problem = random_problem(seed)
        model = build(problem)
        outcome = solve(model, gap=1e-9)
        engine = solve_separable(problem, Search(gap=1e-9))
        verdicts.add(outcome.stop)
        if outcome.x is None:
            assert outcome.stop is StopReason.INFEASIBLE, seed
            assert engine.stop is StopReason.INFEASIBLE, seed
            continue
        chosen, blocks = answer(model, problem)
        assert problem.objective(chosen, blocks) == pytest.approx(outcome.objective, abs=1e-6), seed
        assert (problem.excess(chosen, blocks) <= 1e-6).all(), seed
        assert (chosen[problem.must] >= 0).all(), seed
        assert engine.objective == pytest.approx(outcome.objective, rel=1e-6, abs=1e-6), seed
    assert {StopReason.INFEASIBLE, StopReason.COMPLETE} <= verdicts


def test_scaled_reference_round_gives_the_engines_objective():
    """Scaled as the engine scales it, 24 jobs: the same optimum in the user's units."""
    problem = reference(24, seed=5)
    scaled, units = normalise(problem)
    model = build(scaled)
    outcome = solve(model, gap=1e-7)
    worth = problem.objective(*answer(model, problem))
    assert worth == pytest.approx(outcome.objective * units.value, rel=1e-7)
    assert worth == pytest.approx(solve_separable(problem, Search(gap=1e-7)).objective, rel=2e-7)


def test_every_row_has_its_name():
    """A job without options has no row; resources go by their names."""
    problem = problem_of(
        [[(1, (2, 30))], [], [(3, (4, 50)), (2, (1, 20))]], (5, 60), names=("gpus", "power_cap")
    )
    model = build(problem)
    assert list(model.one_option) == [0, 2]
    assert list(model.resource) == ["gpus", "power_cap"]
    assert model.one_option[0].lower is None
    assert model.resource["power_cap"].upper == 60


def test_blocks_provide_and_jobs_wait():
    """Two jobs of 3 GPUs, one there; blocks of 2 GPUs cost 0.4, at most 2 of them.

    One job lacks 2 GPUs, exactly one block, whether in part or whole: 1 - 0.4 = 0.6. Both jobs
    lack 5, more than two blocks.
    """
    jobs = [[(1, (3,))], [(1, (3,))]]
    for whole in (True, False):
        problem = problem_of(jobs, (1,), blocks=[(-0.4, (-2,), 2, whole)])
        model = build(problem)
        assert solve(model, gap=1e-9).objective == pytest.approx(0.6)
        chosen, blocks = answer(model, problem)
        assert (chosen >= 0).sum() == 1
        assert blocks.tolist() == pytest.approx([1.0])


def test_block_in_part_costs_its_part():
    """One job of 2 GPUs, one there, blocks of 2 for 0.4: half a block for 0.2, a whole for 0.4."""
    for whole, worth in ((True, 0.6), (False, 0.8)):
        problem = problem_of([[(1, (2,))]], (1,), blocks=[(-0.4, (-2,), 2, whole)])
        assert solve(build(problem), gap=1e-9).objective == pytest.approx(worth)


@pytest.mark.parametrize(("capacity", "stop"), [(1, "complete"), (-1, "infeasible")])
def test_without_any_option_the_rows_still_stand(capacity, stop):
    """Nothing to decide: worth 0, or infeasible if something must be used."""
    assert solve(build(problem_of([[]], (capacity,)))).stop == stop
